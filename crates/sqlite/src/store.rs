//! Opening the database, and the contract on top of the writer and the readers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_core::approval::{Approval, ApprovalKey};
use holdfast_core::audit::Report;
use holdfast_core::cache::{CacheBucket, LandingKey};
use holdfast_core::campaign::Campaign;
use holdfast_core::case::Case;
use holdfast_core::command::How;
use holdfast_core::id::{CampaignId, CaseId, OrderId, OrderKey, PoolId};
use holdfast_core::ledger::Entry;
use holdfast_core::order::Order;
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_metrics::StoreMetrics;
use holdfast_store::{
    ActFilter, ActId, ActRow, ApprovalFilter, AuditWatch, Authority, Batch, CampaignTotals, CaseFilter,
    CatalogChanges, Clock, Committed, CreateKey, Credits, DueOrder, Error, Failpoints, KeyId, KeyRefusal,
    KeyRow, Lease, LedgerAhead, LedgerFilter, LedgerPosition, NewIncarnation, OpenEnds, OrderFilter, Page,
    PoolFilter, PoolRow, PutAssortment, PutCampaign, QueuePlace, ResolveCase, RevokeKey, Scope, Settlement,
    Store, SwitchCampaign, SwitchPool, SystemClock,
};
use rusqlite::{Connection, params};

use crate::checkpoint::Checkpoints;
use crate::error::Driver;
use crate::lock::{self, ServerLock};
use crate::reader::{self, Readers};
use crate::writer::Writer;
use crate::{
    acts, ahead, approvals, archive, audit, cache, campaign, cases, catalog, keys, migrate, query, queue,
    settlement,
};

/// Below this version a write-ahead log may be reset while it is read, and the database corrupted.
pub(crate) const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// The authority's clock.
    pub clock: Arc<dyn Clock>,
    /// Makes the incarnation's id.
    pub incarnation: u128,
    /// Points at which a test build dies.
    pub failpoints: Failpoints,
}

impl Default for Options {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), incarnation: 0, failpoints: Failpoints::default() }
    }
}

/// The embedded store.
pub struct SqliteStore {
    pub(crate) writer: Writer,
    pub(crate) readers: Readers,
    path: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    metrics: Arc<StoreMetrics>,
    _lock: ServerLock,
}

impl SqliteStore {
    /// Opens a database, creates or migrates it, and makes one durable write, so that whatever is read
    /// from now on is on disk.
    pub fn open(path: &Path, options: Options) -> Result<Self, Error> {
        if rusqlite::version_number() < SQLITE_VERSION_MIN {
            return Err(Error::Unavailable(format!("SQLite {} is too old", rusqlite::version())));
        }
        let path = &lock::one_name(path)?;
        let lock = lock::take(path)?;
        let mut connection = connect(path, 0)?;
        check_whole(&connection)?;
        archive::refuse(&connection)?;
        migrate::run(&mut connection)?;
        begin_start(&connection, options.incarnation)?;
        queue::end_leases(&connection)?;
        let clock = Arc::clone(&options.clock);
        let checkpoints = Checkpoints::start(path)?;
        let metrics = Arc::<StoreMetrics>::default();
        let measured = Arc::clone(&metrics);
        let writer = Writer::start(connection, options.clock, options.failpoints, checkpoints, measured)
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        let readers = Readers::new(path, Arc::clone(&metrics));
        Ok(Self { writer, readers, path: path.to_owned(), clock, metrics, _lock: lock })
    }
}

/// A file that is damaged (a backup copied over it beside its old log, a torn disk) must not sell.
fn check_whole(connection: &Connection) -> Result<(), Error> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).store()?;
    if found == "ok" {
        return Ok(());
    }
    Err(Error::Corrupt(format!(
        "the database file is damaged ({found}); restore a backup with `holdfast restore`"
    )))
}

/// Opens a writing connection with the settings that the promises rest on.
pub(crate) fn connect(path: &Path, autocheckpoint: u32) -> Result<Connection, Error> {
    let connection = Connection::open(path).store()?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.busy_timeout(Duration::from_secs(5)).store()?;
    connection
        .execute_batch(&format!(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             PRAGMA fullfsync = ON; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;
             PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA cache_size = -65536;
             PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = {autocheckpoint};"
        ))
        .store()?;
    assert_pragmas(&connection)?;
    Ok(connection)
}

/// What the promises rest on is checked, not assumed: a pragma that is not understood is silently ignored.
fn assert_pragmas(connection: &Connection) -> Result<(), Error> {
    let value = |pragma: &str| -> Result<String, Error> {
        connection
            .pragma_query_value(None, pragma, |row| {
                row.get::<_, rusqlite::types::Value>(0).map(|value| match value {
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Text(text) => text,
                    rusqlite::types::Value::Null
                    | rusqlite::types::Value::Real(_)
                    | rusqlite::types::Value::Blob(_) => String::new(),
                })
            })
            .store()
    };
    for (pragma, wanted) in [("journal_mode", "wal"), ("synchronous", "2"), ("foreign_keys", "1")] {
        let actual = value(pragma)?;
        if actual != wanted {
            return Err(Error::Unavailable(format!("PRAGMA {pragma} is {actual:?}, not {wanted:?}")));
        }
    }
    Ok(())
}

fn begin_start(connection: &Connection, incarnation: u128) -> Result<(), Error> {
    let sql = "INSERT INTO authority (only_row, incarnation, starts) VALUES (1, ?1, 1) \
               ON CONFLICT (only_row) DO UPDATE SET starts = starts + 1";
    connection.execute(sql, params![incarnation.to_be_bytes()]).store()?;
    Ok(())
}

/// Opens a file of somebody else's server, to read what this binary can read.
pub(crate) fn beside(path: &Path) -> Result<Connection, Error> {
    let db = reader::open(path)?;
    migrate::schema_of(&db)?.check_readable()?;
    Ok(db)
}

/// Audits a database file beside a running server, or without one.
pub fn audit_file(path: &Path) -> Result<Report, Error> {
    audit_file_as_of(path, None, &mut ())
}

/// The same, of its ledger as of a time if one is named, with somebody who watches.
pub fn audit_file_as_of(
    path: &Path,
    as_of: Option<Timestamp>,
    watch: &mut dyn AuditWatch,
) -> Result<Report, Error> {
    audit::audit(&beside(path)?, as_of, watch)
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, batch: Batch) -> Result<Committed, Error> {
        self.writer.commit(batch).await
    }

    async fn put_campaign(&self, put: PutCampaign) -> Result<(Arc<Campaign>, bool), Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| campaign::put(db, put, clock.now())).await
    }

    async fn switch_campaign(&self, switch: SwitchCampaign) -> Result<Result<Arc<Campaign>, Refusal>, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| campaign::switch(db, &switch, clock.now())).await
    }

    async fn put_assortment(
        &self,
        put: PutAssortment,
    ) -> Result<Result<(Arc<Campaign>, How), Refusal>, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| campaign::put_assortment(db, &put, clock.now())).await
    }

    async fn switch_pool(&self, switch: SwitchPool) -> Result<Result<PoolRow, Refusal>, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| campaign::switch_pool(db, &switch, clock.now())).await
    }

    async fn create_key(&self, create: CreateKey) -> Result<Result<KeyRow, KeyRefusal>, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| keys::create(db, create, clock.now())).await
    }

    async fn create_first_key(&self, create: CreateKey) -> Result<bool, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| keys::create_first(db, create, clock.now())).await
    }

    async fn revoke_key(&self, revoke: RevokeKey) -> Result<Result<KeyRow, KeyRefusal>, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| keys::revoke(db, &revoke, clock.now())).await
    }

    async fn key(&self, id: KeyId) -> Result<Option<KeyRow>, Error> {
        self.readers.read(move |db| keys::key(db, &id)).await
    }

    async fn keys(&self, page: Page<KeyId>) -> Result<(Vec<KeyRow>, bool), Error> {
        self.readers.read(move |db| keys::list(db, &page)).await
    }

    async fn live_keys(&self) -> Result<Vec<KeyRow>, Error> {
        let now = self.clock.now();
        self.readers.read(move |db| keys::live(db, now)).await
    }

    async fn acts(&self, filter: ActFilter, page: Page<ActId>) -> Result<(Vec<ActRow>, bool), Error> {
        self.readers.read(move |db| acts::list(db, &filter, &page)).await
    }

    async fn approval(&self, key: ApprovalKey) -> Result<Option<Arc<Approval>>, Error> {
        self.readers.read(move |db| approvals::find(db, &key)).await
    }

    async fn approvals(
        &self,
        filter: ApprovalFilter,
        page: Page<ApprovalKey>,
    ) -> Result<(Vec<Arc<Approval>>, bool), Error> {
        self.readers.read(move |db| approvals::list(db, &filter, &page)).await
    }

    async fn limit_salt(&self) -> Result<[u8; 32], Error> {
        self.readers.read(cases::limit_salt).await
    }

    async fn authority(&self) -> Result<Authority, Error> {
        self.readers.read(cases::authority).await
    }

    async fn begin_incarnation(&self, begin: NewIncarnation) -> Result<(), Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| cases::begin_incarnation(db, &begin, clock.now())).await
    }

    async fn cases(&self, filter: CaseFilter, page: Page<CaseId>) -> Result<(Vec<Case>, bool), Error> {
        self.readers.read(move |db| cases::list(db, filter, &page)).await
    }

    async fn open_case(&self, case: Case) -> Result<(), Error> {
        self.writer.call(move |db| cases::open(db, &case)).await
    }

    async fn resolve_case(&self, resolve: ResolveCase) -> Result<Result<Case, Refusal>, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| cases::resolve(db, &resolve, clock.now())).await
    }

    async fn catalog(&self, since: Option<u64>) -> Result<CatalogChanges, Error> {
        self.readers.read(move |db| catalog::changes(db, since)).await
    }

    async fn campaign(&self, id: CampaignId) -> Result<Option<CampaignTotals>, Error> {
        self.readers.read(move |db| query::campaign(db, &id)).await
    }

    async fn campaigns(
        &self,
        scope: Scope,
        page: Page<CampaignId>,
    ) -> Result<(Vec<CampaignTotals>, bool), Error> {
        self.readers.read(move |db| query::campaigns(db, &scope, &page)).await
    }

    async fn closed_into(
        &self,
        campaign: Option<CampaignId>,
        page: Page<CampaignId>,
    ) -> Result<Vec<(CampaignId, PoolId)>, Error> {
        self.readers.read(move |db| query::closed_into(db, campaign.as_ref(), &page)).await
    }

    async fn warm(&self) -> Result<usize, Error> {
        self.readers.warm().await
    }

    async fn pool(&self, id: PoolId) -> Result<Option<PoolRow>, Error> {
        self.readers.read(move |db| query::pool(db, id)).await
    }

    async fn pools(&self, filter: PoolFilter, page: Page<PoolId>) -> Result<(Vec<PoolRow>, bool), Error> {
        self.readers.read(move |db| query::pools(db, &filter, &page)).await
    }

    async fn order(&self, id: OrderId) -> Result<Option<Arc<Order>>, Error> {
        self.readers.read(move |db| query::order(db, id)).await
    }

    async fn order_by_key(&self, key: OrderKey) -> Result<Option<Arc<Order>>, Error> {
        self.readers.read(move |db| query::order_by_key(db, &key)).await
    }

    async fn order_keys(&self, page: Page<OrderKey>) -> Result<(Vec<OrderKey>, bool), Error> {
        self.readers.read(move |db| query::order_keys(db, &page)).await
    }

    async fn orders(
        &self,
        filter: OrderFilter,
        page: Page<OrderId>,
    ) -> Result<(Vec<Arc<Order>>, bool), Error> {
        self.readers.read(move |db| query::orders(db, &filter, &page)).await
    }

    async fn ledger(
        &self,
        filter: LedgerFilter,
        page: Page<LedgerPosition>,
    ) -> Result<(Vec<Entry>, bool), Error> {
        self.readers.read(move |db| query::ledger(db, &filter, &page)).await
    }

    async fn order_position(&self, order: OrderId, version: u32) -> Result<Option<LedgerPosition>, Error> {
        self.readers.read(move |db| settlement::order_position(db, order, version)).await
    }

    async fn ledgers_ahead(&self, pools: Vec<PoolId>) -> Result<Vec<LedgerAhead>, Error> {
        self.readers.read(move |db| ahead::ledgers_ahead(db, &pools)).await
    }

    async fn settlement(&self, campaign: CampaignId) -> Result<Option<Settlement>, Error> {
        let now = self.clock.now();
        self.readers.read(move |db| settlement::settlement(db, &campaign, now)).await
    }

    async fn open_ends(&self, now: Timestamp, most: u64) -> Result<OpenEnds, Error> {
        self.readers.read(move |db| query::open_ends(db, now, most)).await
    }

    async fn due(&self, now: Timestamp, page: Page<(Timestamp, OrderId)>) -> Result<Vec<DueOrder>, Error> {
        self.readers.read(move |db| query::due(db, now, &page)).await
    }

    async fn queued(&self, bucket: BucketKey, page: Page<QueuePlace>) -> Result<Vec<QueuePlace>, Error> {
        self.readers.read(move |db| queue::queued(db, bucket, &page)).await
    }

    async fn queues(&self, page: Page<BucketKey>) -> Result<Vec<BucketKey>, Error> {
        self.readers.read(move |db| queue::queues(db, &page)).await
    }

    async fn cache_buckets(&self, page: Page<BucketKey>) -> Result<(Vec<CacheBucket>, bool), Error> {
        self.readers.read(move |db| cache::list(db, &page)).await
    }

    async fn cache_bucket(&self, bucket: BucketKey) -> Result<Option<CacheBucket>, Error> {
        self.readers.read(move |db| cache::find(db, bucket)).await
    }

    async fn credits(&self, bucket: BucketKey, after: u64, entries_max: u32) -> Result<Credits, Error> {
        self.readers.read(move |db| cache::credits(db, bucket, after, entries_max)).await
    }

    async fn landed(&self, key: LandingKey) -> Result<Option<Entry>, Error> {
        self.readers.read(move |db| cache::landed(db, key)).await
    }

    async fn take_lease(&self, lease: Lease) -> Result<bool, Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| queue::take_lease(db, &lease, clock.now())).await
    }

    async fn give_up_leases(&self, holder: u128) -> Result<(), Error> {
        let clock = Arc::clone(&self.clock);
        self.writer.call(move |db| queue::give_up_leases(db, holder, clock.now())).await
    }

    async fn audit(&self) -> Result<Report, Error> {
        let path = self.path.clone();
        // Not one of the bounded reads: it may take long, and is for tests and operators.
        tokio::task::spawn_blocking(move || audit_file(&path))
            .await
            .map_err(|_| Error::Unavailable("the audit panicked".into()))?
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn health(&self) -> Result<(), Error> {
        if self.writer.has_failed() {
            return Err(Error::Unavailable("a flush failed; the server must be restarted".into()));
        }
        Ok(())
    }

    fn outage(&self) -> Option<Error> {
        None
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn metrics(&self) -> &Arc<StoreMetrics> {
        &self.metrics
    }
}
