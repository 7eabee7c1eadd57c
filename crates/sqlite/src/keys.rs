//! Keys of the API. Secrets come in as hashes and go out never.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_core::id::CampaignId;
use holdfast_core::time::Timestamp;
use holdfast_store::{
    Act, CreateKey, Error, KeyId, KeyRefusal, KeyRow, LIVE_KEYS_MAX, Page, RevokeKey, Role, Scope, page_of,
};
use rusqlite::{Connection, Row, params};

use crate::acts;
use crate::codec::get;
use crate::error::{Driver, corrupt};
use crate::load::{many, one};
use crate::query::{Query, text};

const LIVE: &str = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?1)";

fn live_count(db: &Connection, now: Timestamp, role: Option<Role>) -> Result<usize, Error> {
    let sql = format!("SELECT count(*) FROM api_key WHERE {LIVE} AND coalesce(role = ?2, 1)");
    let count: i64 = db.query_row(&sql, params![now.0, role.map(Role::as_str)], |row| row.get(0)).store()?;
    usize::try_from(count).map_err(|_| corrupt("a count of keys"))
}

pub(crate) fn create(
    db: &Connection,
    create: CreateKey,
    now: Timestamp,
) -> Result<Result<KeyRow, KeyRefusal>, Error> {
    if key(db, &create.id)?.is_some() {
        return Ok(Err(KeyRefusal::Taken));
    }
    if live_count(db, now, None)? >= LIVE_KEYS_MAX {
        return Ok(Err(KeyRefusal::TooMany));
    }
    let via = create.via.clone();
    let key = create.into_row(now);
    insert(db, &key)?;
    acts::record(db, &Act::create_key(&key, via.as_ref()), now)?;
    Ok(Ok(key))
}

/// Makes a key only if nobody else could make one.
pub(crate) fn create_first(db: &Connection, first: CreateKey, now: Timestamp) -> Result<bool, Error> {
    Ok(live_count(db, now, Some(Role::Admin))? == 0 && create(db, first, now)?.is_ok())
}

fn insert(db: &Connection, key: &KeyRow) -> Result<(), Error> {
    let campaigns = key.scope.campaigns().map(|campaigns| {
        let names: Vec<&str> = campaigns.iter().map(CampaignId::as_str).collect();
        serde_json::to_string(&names)
    });
    let campaigns = campaigns.transpose().map_err(|error| Error::Data(error.to_string()))?;
    let sql = "INSERT INTO api_key (id, name, role, campaigns, secret_sha256, created_at, expires_at, created_by) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let (id, role, expires_at) = (key.id.as_str(), key.role.as_str(), key.expires_at.map(|end| end.0));
    let (secret, created_at) = (key.secret_sha256, key.created_at.0);
    db.execute(sql, params![id, key.name, role, campaigns, secret, created_at, expires_at, &*key.created_by])
        .store()?;
    Ok(())
}

pub(crate) fn revoke(
    db: &Connection,
    revoke: &RevokeKey,
    now: Timestamp,
) -> Result<Result<KeyRow, KeyRefusal>, Error> {
    let Some(mut known) = key(db, &revoke.id)? else { return Ok(Err(KeyRefusal::Unknown)) };
    if known.revoked_at.is_some() {
        return Ok(Ok(known));
    }
    let is_admin = known.role == Role::Admin && known.is_live(now);
    if is_admin && live_count(db, now, Some(Role::Admin))? == 1 {
        return Ok(Err(KeyRefusal::LastAdmin));
    }
    db.execute("UPDATE api_key SET revoked_at = ?2 WHERE id = ?1", params![known.id.as_str(), now.0])
        .store()?;
    known.revoked_at = Some(now);
    acts::record(db, &Act::revoke_key(&known, revoke.via.as_ref()), now)?;
    Ok(Ok(known))
}

pub(crate) fn key(db: &Connection, id: &KeyId) -> Result<Option<KeyRow>, Error> {
    one(db, "SELECT * FROM api_key WHERE id = ?1", params![id.as_str()], row_of)
}

pub(crate) fn list(db: &Connection, page: &Page<KeyId>) -> Result<(Vec<KeyRow>, bool), Error> {
    let mut query = Query::new("SELECT * FROM api_key");
    query.and("id > ?", page.after.as_ref().map(|id| text(id.as_str())));
    Ok(page_of(query.page("id", page.limit).run(db, row_of)?, page.limit))
}

pub(crate) fn live(db: &Connection, now: Timestamp) -> Result<Vec<KeyRow>, Error> {
    many(db, &format!("SELECT * FROM api_key WHERE {LIVE} ORDER BY id"), params![now.0], row_of)
}

fn row_of(row: &Row<'_>) -> Result<KeyRow, Error> {
    let role: String = get(row, "role")?;
    let campaigns: Option<String> = get(row, "campaigns")?;
    let secret: Vec<u8> = get(row, "secret_sha256")?;
    Ok(KeyRow {
        id: KeyId::new(&get::<String>(row, "id")?).ok_or_else(|| corrupt("a key's id"))?,
        name: get(row, "name")?,
        role: Role::parse(&role).ok_or_else(|| corrupt(format_args!("unknown role {role:?}")))?,
        scope: campaigns.map_or(Ok(Scope::All), |text| scope_of(&text))?,
        secret_sha256: secret.as_slice().try_into().map_err(|_| corrupt("the hash of a key"))?,
        created_at: Timestamp(get(row, "created_at")?),
        expires_at: get::<Option<i64>>(row, "expires_at")?.map(Timestamp),
        revoked_at: get::<Option<i64>>(row, "revoked_at")?.map(Timestamp),
        created_by: get::<String>(row, "created_by")?.into(),
    })
}

fn scope_of(text: &str) -> Result<Scope, Error> {
    let names: Vec<String> = serde_json::from_str(text).map_err(|_| corrupt("the campaigns of a key"))?;
    let campaigns: Result<BTreeSet<_>, _> = names.iter().map(|name| CampaignId::new(name)).collect();
    Ok(Scope::Only(Arc::new(campaigns.map_err(|_| corrupt("a campaign of a key"))?)))
}
