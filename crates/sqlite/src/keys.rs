//! Keys of the API. Secrets come in as hashes and go out never.

use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, corrupt, write_scope};
use holdfast_store::{
    Act, CreateKey, Error, KeyId, KeyRefusal, KeyRow, LIVE_KEYS_MAX, Page, RevokeKey, Role, page_of,
};
use rusqlite::{Connection, params};

use crate::acts;
use crate::error::Driver;
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
    let campaigns = write_scope(&key.scope)?;
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
    one(db, "SELECT * FROM api_key WHERE id = ?1", params![id.as_str()], rows::key)
}

pub(crate) fn list(db: &Connection, page: &Page<KeyId>) -> Result<(Vec<KeyRow>, bool), Error> {
    let mut query = Query::new("SELECT * FROM api_key");
    query.and("id > ?", page.after.as_ref().map(|id| text(id.as_str())));
    Ok(page_of(query.page("id", page.limit).run(db, rows::key)?, page.limit))
}

pub(crate) fn live(db: &Connection, now: Timestamp) -> Result<Vec<KeyRow>, Error> {
    many(db, &format!("SELECT * FROM api_key WHERE {LIVE} ORDER BY id"), params![now.0], rows::key)
}
