//! Keys of the API. Secrets come in as hashes and go out never. What is decided by counting keys is decided under
//! the lock of the authority's row, one node after another.

use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self as row, corrupt, write_scope};
use holdfast_store::{Act, CreateKey, KeyId, KeyRefusal, KeyRow, LIVE_KEYS_MAX, Page, RevokeKey, Role};
use tokio_postgres::types::Type;

use crate::acts;
use crate::call::{Work, rows};
use crate::connection::Connection;
use crate::error::Fault;
use crate::query::Query;
use crate::row::first;
use crate::store::Inner;

/// The key that is made if there is none with which others could be made.
pub(crate) struct First(pub(crate) CreateKey);

pub(crate) fn key(id: &KeyId) -> Query {
    Query::whole("SELECT * FROM api_key WHERE id = $1").with(id.as_str().to_owned(), Type::TEXT)
}

pub(crate) fn list(page: &Page<KeyId>) -> Query {
    let mut query = Query::new("SELECT * FROM api_key");
    query.and_text("id >", page.after.as_ref().map(KeyId::as_str));
    query.page("id", page.limit)
}

pub(crate) fn live(now: Timestamp) -> Query {
    let sql = "SELECT * FROM api_key WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1) ORDER BY id";
    Query::whole(sql).with(now.0, Type::INT8)
}

async fn lock_and_time(connection: &Connection, inner: &Inner) -> Result<Timestamp, Fault> {
    rows(connection, "SELECT only_row FROM authority FOR UPDATE", &[], &[]).await?;
    inner.time(connection).await
}

async fn known(connection: &Connection, id: &KeyId) -> Result<Option<KeyRow>, Fault> {
    first(&key(id).rows(connection).await?, row::key).map_err(Fault::Refused)
}

async fn live_count(connection: &Connection, now: Timestamp, role: Option<Role>) -> Result<usize, Fault> {
    let sql = "SELECT count(*) AS live FROM api_key \
               WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1) AND role = coalesce($2, role)";
    let role = role.map(Role::as_str);
    let found = rows(connection, sql, &[&now.0, &role], &[Type::INT8, Type::TEXT]).await?;
    let count = first(&found, |row| row::number(row, "live")).map_err(Fault::Refused)?;
    count.ok_or_else(|| Fault::Refused(corrupt("a count of keys")))
}

async fn create(
    connection: &Connection,
    create: &CreateKey,
    now: Timestamp,
) -> Result<Result<KeyRow, KeyRefusal>, Fault> {
    if known(connection, &create.id).await?.is_some() {
        return Ok(Err(KeyRefusal::Taken));
    }
    if live_count(connection, now, None).await? >= LIVE_KEYS_MAX {
        return Ok(Err(KeyRefusal::TooMany));
    }
    let key = create.clone().into_row(now);
    insert(connection, &key).await?;
    acts::record(connection, &Act::create_key(&key, create.via.as_ref()), now).await?;
    Ok(Ok(key))
}

async fn insert(connection: &Connection, key: &KeyRow) -> Result<(), Fault> {
    let campaigns = write_scope(&key.scope).map_err(Fault::Refused)?;
    let sql = "INSERT INTO api_key (id, name, role, campaigns, secret_sha256, created_at, expires_at, created_by) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let types =
        [Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT, Type::BYTEA, Type::INT8, Type::INT8, Type::TEXT];
    let (id, role, expires_at) = (key.id.as_str(), key.role.as_str(), key.expires_at.map(|end| end.0));
    let (secret, created_by) = (key.secret_sha256.as_slice(), &*key.created_by);
    rows(
        connection,
        sql,
        &[&id, &key.name, &role, &campaigns, &secret, &key.created_at.0, &expires_at, &created_by],
        &types,
    )
    .await?;
    Ok(())
}

impl Work for CreateKey {
    type Output = Result<KeyRow, KeyRefusal>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Self::Output, Fault> {
        let now = lock_and_time(connection, inner).await?;
        create(connection, self, now).await
    }
}

impl Work for First {
    type Output = bool;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<bool, Fault> {
        let now = lock_and_time(connection, inner).await?;
        Ok(live_count(connection, now, Some(Role::Admin)).await? == 0
            && create(connection, &self.0, now).await?.is_ok())
    }
}

impl Work for RevokeKey {
    type Output = Result<KeyRow, KeyRefusal>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Self::Output, Fault> {
        let now = lock_and_time(connection, inner).await?;
        let Some(mut known) = known(connection, &self.id).await? else { return Ok(Err(KeyRefusal::Unknown)) };
        if known.revoked_at.is_some() {
            return Ok(Ok(known));
        }
        let is_admin = known.role == Role::Admin && known.is_live(now);
        if is_admin && live_count(connection, now, Some(Role::Admin)).await? == 1 {
            return Ok(Err(KeyRefusal::LastAdmin));
        }
        let sql = "UPDATE api_key SET revoked_at = $2 WHERE id = $1";
        rows(connection, sql, &[&known.id.as_str(), &now.0], &[Type::TEXT, Type::INT8]).await?;
        known.revoked_at = Some(now);
        acts::record(connection, &Act::revoke_key(&known, self.via.as_ref()), now).await?;
        Ok(Ok(known))
    }
}
