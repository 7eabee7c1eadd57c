//! Usage rows: of accounts, and of keys that orders carry. They are locked and written in the order of their keys,
//! accounts first, so that two nodes do not wait for each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::id::CampaignId;
use holdfast_core::limit::{Limited, Void};
use holdfast_core::order::Usage;
use holdfast_core::snapshot::UsageKey;
use holdfast_store::Error;
use holdfast_store::rows::{self, integer};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call;
use crate::connection::Connection;
use crate::error::Fault;
use crate::flight::{Flight, Owned};
use crate::row::{all, uuid};
use crate::statement::{Sql, exactly};

/// Locks in the order of the arrays: what is laid out before a `LATERAL` is read first.
static ACCOUNTS: Sql = Sql::new(
    "SELECT found.* FROM UNNEST($1, $2) AS wanted (campaign_id, account), LATERAL (SELECT * FROM account_usage AS held \
     WHERE held.campaign_id = wanted.campaign_id AND held.account = wanted.account LIMIT 1 FOR UPDATE) AS found",
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY],
);
static KEYS: Sql = Sql::new(
    "SELECT found.* FROM UNNEST($1, $2, $3) AS wanted (campaign_id, name, hashed), LATERAL (SELECT * FROM key_usage \
     AS held WHERE held.campaign_id = wanted.campaign_id AND held.name = wanted.name AND held.hashed = wanted.hashed \
     LIMIT 1 FOR UPDATE) AS found",
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::UUID_ARRAY],
);
static INSERT_ACCOUNTS: Sql = Sql::new(
    "INSERT INTO account_usage (campaign_id, account, units, open_holds) SELECT * FROM UNNEST($1, $2, $3, $4)",
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY],
);
static UPDATE_ACCOUNTS: Sql = Sql::new(
    concat!(
        "WITH done AS (UPDATE account_usage SET units = new.units, open_holds = new.open_holds \
         FROM UNNEST($1, $2, $3, $4) AS new (campaign_id, account, units, open_holds) \
         WHERE account_usage.campaign_id = new.campaign_id AND account_usage.account = new.account RETURNING 1)",
        exactly!("$5")
    ),
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8],
);
static INSERT_KEYS: Sql = Sql::new(
    "INSERT INTO key_usage (campaign_id, name, hashed, units, open_holds) SELECT * FROM UNNEST($1, $2, $3, $4, $5)",
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::UUID_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY],
);
static UPDATE_KEYS: Sql = Sql::new(
    concat!(
        "WITH done AS (UPDATE key_usage SET units = new.units, open_holds = new.open_holds \
         FROM UNNEST($1, $2, $3, $4, $5) AS new (campaign_id, name, hashed, units, open_holds) \
         WHERE key_usage.campaign_id = new.campaign_id AND key_usage.name = new.name \
         AND key_usage.hashed = new.hashed RETURNING 1)",
        exactly!("$6")
    ),
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::UUID_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8],
);

/// What every batch of a campaign with limits may ask and write.
pub(crate) static HOT: &[&Sql] =
    &[&ACCOUNTS, &KEYS, &INSERT_ACCOUNTS, &UPDATE_ACCOUNTS, &INSERT_KEYS, &UPDATE_KEYS];

/// Where the answers of a flight stand.
#[derive(Default)]
pub(crate) struct Places {
    accounts: Option<usize>,
    keys: Option<usize>,
}

/// Rows of one kind, column by column, in the order of their keys.
#[derive(Default)]
struct Columns {
    campaigns: Vec<String>,
    /// The accounts, or the names of keys.
    names: Vec<String>,
    /// The keys; none for accounts.
    hashed: Vec<Uuid>,
    units: Vec<i64>,
    open_holds: Vec<i64>,
}

impl Columns {
    fn add(&mut self, key: &UsageKey, usage: Usage) -> Result<(), Error> {
        self.campaigns.push(key.campaign.to_string());
        match &key.limited {
            Limited::Account(account) => self.names.push(account.to_string()),
            Limited::Key(name, hashed) => {
                self.names.push(name.to_string());
                self.hashed.push(uuid(hashed.0));
            }
        }
        self.units.push(integer(usage.units)?);
        self.open_holds.push(integer(usage.open_holds)?);
        Ok(())
    }

    fn keys<'f>(self) -> (Vec<Owned<'f>>, [Vec<i64>; 2]) {
        let mut params: Vec<Owned<'f>> = vec![Box::new(self.campaigns), Box::new(self.names)];
        if !self.hashed.is_empty() {
            params.push(Box::new(self.hashed));
        }
        (params, [self.units, self.open_holds])
    }
}

/// Rows of accounts and rows of keys.
#[derive(Default)]
struct ByKind {
    accounts: Columns,
    keys: Columns,
}

impl ByKind {
    fn of<'k>(rows: impl Iterator<Item = (&'k UsageKey, Usage)>) -> Result<Self, Error> {
        let mut kinds = Self::default();
        for (key, usage) in rows {
            let columns = match key.limited {
                Limited::Account(_) => &mut kinds.accounts,
                Limited::Key(..) => &mut kinds.keys,
            };
            columns.add(key, usage)?;
        }
        Ok(kinds)
    }
}

/// Asks for rows and locks them.
pub(crate) fn ask(flight: &mut Flight<'_>, wanted: &BTreeSet<UsageKey>) -> Places {
    // Without usage nothing is out of range.
    let kinds = ByKind::of(wanted.iter().map(|key| (key, Usage::default()))).unwrap_or_default();
    let mut add = |sql: &'static Sql, columns: Columns| {
        let some = !columns.campaigns.is_empty();
        some.then(|| flight.add(sql, columns.keys().0))
    };
    let accounts = add(&ACCOUNTS, kinds.accounts);
    Places { accounts, keys: add(&KEYS, kinds.keys) }
}

/// Takes the rows that are there.
pub(crate) fn take(answers: &[Vec<Row>], places: &Places) -> Result<Vec<(UsageKey, Usage)>, Error> {
    let at = |place: Option<usize>| place.and_then(|at| answers.get(at)).map_or(&[][..], Vec::as_slice);
    let mut found = all(at(places.accounts), |row| Ok((rows::usage_key(row)?, rows::usage(row)?)))?;
    found.extend(all(at(places.keys), |row| Ok((rows::key_usage_key(row)?, rows::usage(row)?)))?);
    Ok(found)
}

/// Writes rows as they stand after a batch. `counted` are those that are there.
pub(crate) fn write(
    flight: &mut Flight<'_>,
    changed: &[(UsageKey, Usage)],
    counted: &BTreeSet<UsageKey>,
) -> Result<(), Error> {
    let part = |is_there: bool| {
        let rows = changed.iter().filter(move |(key, _)| counted.contains(key) == is_there);
        ByKind::of(rows.map(|(key, usage)| (key, *usage)))
    };
    let (new, known) = (part(false)?, part(true)?);
    for (insert, update, new, known) in [
        (&INSERT_ACCOUNTS, &UPDATE_ACCOUNTS, new.accounts, known.accounts),
        (&INSERT_KEYS, &UPDATE_KEYS, new.keys, known.keys),
    ] {
        for (sql, columns) in [(insert, new), (update, known)] {
            let count = i64::try_from(columns.campaigns.len()).unwrap_or(i64::MAX);
            if count == 0 {
                continue;
            }
            let (mut params, [units, open_holds]) = columns.keys();
            params.push(Box::new(units));
            params.push(Box::new(open_holds));
            if sql.types.len() > params.len() {
                params.push(Box::new(count));
            }
            flight.add(sql, params);
        }
    }
    Ok(())
}

/// Drops rows that a policy made void, and writes those that were counted for it. No batch of the campaign runs
/// meanwhile.
pub(crate) async fn replace(
    connection: &Connection,
    campaign: &CampaignId,
    void: &Void,
    counted: BTreeMap<Limited, Usage>,
) -> Result<(), Fault> {
    if void.accounts {
        let sql = "DELETE FROM account_usage WHERE campaign_id = $1";
        call::rows(connection, sql, &[&campaign.as_str()], &[Type::TEXT]).await?;
    }
    if !void.names.is_empty() {
        let names: Vec<&str> = void.names.iter().map(|name| name.as_str()).collect();
        let sql = "DELETE FROM key_usage WHERE campaign_id = $1 AND name = ANY ($2)";
        call::rows(connection, sql, &[&campaign.as_str(), &names], &[Type::TEXT, Type::TEXT_ARRAY]).await?;
    }
    let counted: Vec<(UsageKey, Usage)> = counted
        .into_iter()
        .map(|(limited, usage)| (UsageKey { campaign: campaign.clone(), limited }, usage))
        .collect();
    let mut flight = Flight::default();
    write(&mut flight, &counted, &BTreeSet::new()).map_err(Fault::Refused)?;
    if !flight.is_empty() {
        flight.send(connection, None).await?.answers().await?;
    }
    Ok(())
}
