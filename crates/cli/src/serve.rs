//! `holdfast serve`: the server.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use holdfast_engine::{Engine, UuidV7};
use holdfast_provider::StatusEndpoints;
use holdfast_redis::RedisCache;
use holdfast_server::{Auth as ServerAuth, Config, Limits, NewKey, Secret, Tls};
use holdfast_sink::{Nats, PrivateAddresses, Webhooks};
use holdfast_store::{CreateKey, Role, Scope, Store};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::sinks::NodeSinks;
use crate::{database, notify, output, state_file};

/// How often the store's health is looked at.
const HEALTH_INTERVAL: Duration = Duration::from_millis(200);

/// How often the certificate's files are looked at.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(10);

/// Whether clients need keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Auth {
    /// Every request needs a key
    On,
    /// Nobody is asked; only on a loopback address
    Off,
}

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodeRole {
    /// Sells: all routes
    Api,
    /// Works in the background: ends holds, lands queued orders
    Worker,
}

/// Whether webhooks may lead to addresses that are not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Private {
    /// They are refused when a sink is saved, and again when it is sent to
    Refuse,
    /// They are allowed
    Allow,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// For programs: one JSON object a line
    Json,
}

/// Run the server
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It prints `listening on http://…` on standard output when it is ready. SIGTERM drains: \
                        no new orders,\nwhat has begun is finished, exit 0.\n\n\
                        Example:\n  holdfast serve --database sqlite:shop.db --auth off"
)]
pub(crate) struct Args {
    /// The file with these options; without it ./holdfast.toml is read if it is there
    #[arg(long, env = "HOLDFAST_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "HOLDFAST_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// The authority
    #[arg(
        long,
        env = "HOLDFAST_DATABASE",
        hide_env_values = true,
        default_value = "sqlite:holdfast.db",
        value_name = "URL"
    )]
    pub(crate) database: String,
    /// Redis or Valkey, for pools on the cached path: redis://, redis+sentinel:// or redis+cluster://, with rediss
    /// for TLS. Every node of an authority names the same
    #[arg(long, env = "HOLDFAST_REDIS", hide_env_values = true, value_name = "URL")]
    pub(crate) redis: Option<String>,
    /// Most orders a second that are landed from one bucket's cache; without it as fast as the authority commits
    #[arg(
        long,
        env = "HOLDFAST_CACHE_LANDING_RATE",
        value_parser = clap::value_parser!(u32).range(1..),
        value_name = "ORDERS"
    )]
    pub(crate) cache_landing_rate: Option<u32>,
    /// How often, in seconds, every balance and what is new is compared with the ledger; 0: only when it is asked for
    #[arg(long, env = "HOLDFAST_RECONCILE_SECONDS", default_value_t = 60, value_name = "SECONDS")]
    pub(crate) reconcile_seconds: u32,
    /// How often, in seconds, everything is compared with the ledger; 0: only when it is asked for
    #[arg(long, env = "HOLDFAST_RECONCILE_FULL_SECONDS", default_value_t = 21_600, value_name = "SECONDS")]
    pub(crate) reconcile_full_seconds: u32,
    /// How many percent of the time a comparison may spend asking the authority
    #[arg(
        long,
        env = "HOLDFAST_RECONCILE_SHARE_PERCENT",
        default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(1..=100),
        value_name = "PERCENT"
    )]
    pub(crate) reconcile_share_percent: u32,
    /// NATS with JetStream, for sinks of the kind `nats`: nats:// or tls://, several with commas between
    #[arg(long, env = "HOLDFAST_NATS", hide_env_values = true, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Whether webhooks may lead to addresses that are not public, and to http://. Whoever may save a sink can then
    /// have this server ask whatever it reaches
    #[arg(long, env = "HOLDFAST_SINK_PRIVATE_ADDRESSES", value_enum, default_value_t = Private::Refuse)]
    pub(crate) sink_private_addresses: Private,
    /// What this node does: `api` sells, `worker` ends holds and lands queued orders. Nodes on one PostgreSQL may
    /// share the work; each role must be had by one of them
    #[arg(
        long,
        env = "HOLDFAST_ROLES",
        value_enum,
        value_delimiter = ',',
        default_values_t = [NodeRole::Api, NodeRole::Worker],
        value_name = "ROLES"
    )]
    pub(crate) roles: Vec<NodeRole>,
    /// Where it is written how far the ledger has come, so that an older database that is put back is noticed;
    /// best on another disk. Without it: beside the database, with `.state` at its end
    #[arg(long, env = "HOLDFAST_STATE_FILE", value_name = "FILE")]
    pub(crate) state_file: Option<PathBuf>,
    /// Whether clients need keys
    #[arg(long, env = "HOLDFAST_AUTH", value_enum, default_value_t = Auth::On)]
    pub(crate) auth: Auth,
    /// The certificate chain in PEM form; with it and its key the server speaks TLS and nothing else. Both are
    /// read again when they change and on SIGHUP
    #[arg(long, env = "HOLDFAST_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM form
    #[arg(long, env = "HOLDFAST_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A secret that a payment provider signs its notices with; may be given more than once, also for one
    /// provider while its secrets rotate
    #[arg(
        long = "payment-secret",
        env = "HOLDFAST_PAYMENT_SECRETS",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "PROVIDER=SECRET"
    )]
    payment_secrets: Vec<Hidden>,
    /// Where a payment provider is asked what became of an attempt before its hold is let go; https://, or http:// on
    /// this machine's own loopback. May be given once for each provider
    #[arg(
        long = "payment-status",
        env = "HOLDFAST_PAYMENT_STATUS",
        value_delimiter = ',',
        value_name = "PROVIDER=URL"
    )]
    payment_status: Vec<String>,
    /// The key that such a provider wants, sent as `Authorization: Bearer KEY`
    #[arg(
        long = "payment-status-key",
        env = "HOLDFAST_PAYMENT_STATUS_KEYS",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "PROVIDER=KEY"
    )]
    payment_status_keys: Vec<Hidden>,
    /// Also answer a route that parses an order and answers with a fixed one: the yardstick of `bench limits`
    #[arg(long, hide = true)]
    pub(crate) constant_answer: bool,
    /// How the log on standard error is written
    #[arg(long, env = "HOLDFAST_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// What the log tells: a level, or levels by module
    #[arg(long, env = "HOLDFAST_LOG", default_value = "info", value_name = "FILTER")]
    pub(crate) log: String,
}

/// Text that must not be seen in messages or logs.
#[derive(Clone)]
pub(crate) struct Hidden(pub(crate) String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Options that can be served, as far as it can be told before anything is opened.
pub(crate) struct Checked {
    config: Config,
    database: database::Url,
    redis: Option<Arc<RedisCache>>,
    tls: Option<Arc<Tls>>,
    state: PathBuf,
    status: Option<Arc<StatusEndpoints>>,
}

impl Args {
    /// The certificate, if there is one to be. A bad one is known before anything is opened.
    fn tls(&self) -> Result<Option<Arc<Tls>>> {
        let pair = self.tls_cert.as_ref().zip(self.tls_key.as_ref());
        Ok(pair.map(|(certificate, key)| Tls::load(certificate, key)).transpose()?.map(Arc::new))
    }

    fn has(&self, role: NodeRole) -> bool {
        self.roles.contains(&role)
    }

    /// Everything that can be found wrong before anything is opened.
    pub(crate) fn checked(&self) -> Result<Checked> {
        log_filter(&self.log)?;
        let database = database::Url::parse(&self.database)?;
        let mut payment_secrets: BTreeMap<String, Vec<Secret>> = BTreeMap::new();
        for (provider, secret) in self.payment_secrets()? {
            payment_secrets.entry(provider).or_default().push(Secret::new(secret));
        }
        let auth = match self.auth {
            Auth::On => ServerAuth::Keys,
            Auth::Off => ServerAuth::Off,
        };
        if !(database.is_shared() || self.has(NodeRole::Api) && self.has(NodeRole::Worker)) {
            bail!("{database} has one server: it needs both roles, api and worker");
        }
        let config = Config {
            listen: self.listen,
            api: self.has(NodeRole::Api),
            auth,
            payment_secrets,
            limits: Limits::default(),
            constant_answer: self.constant_answer,
        };
        config.check()?;
        let redis = self.redis()?;
        let tls = self.tls()?;
        let status = self.status()?;
        let state = self.state_file.clone().unwrap_or_else(|| database.state_file());
        let directory = state.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
            bail!("{}: there is no such directory for the state file", directory.display());
        }
        Ok(Checked { config, database, redis, tls, state, status })
    }

    /// The cache, if there is one to be. Nothing is connected yet.
    fn redis(&self) -> Result<Option<Arc<RedisCache>>> {
        let Some(url) = &self.redis else { return Ok(None) };
        let address = holdfast_redis::Address::parse(url)?;
        let failpoints = database::failpoints()?;
        let options = holdfast_redis::Options { failpoints, ..holdfast_redis::Options::default() };
        Ok(Some(Arc::new(RedisCache::new(&address, options)?)))
    }

    /// Where events can be sent.
    fn sinks(&self, store: &Arc<dyn Store>, redis: Option<Arc<RedisCache>>) -> Result<NodeSinks> {
        let private = match self.sink_private_addresses {
            Private::Refuse => PrivateAddresses::Refuse,
            Private::Allow => PrivateAddresses::Allow,
        };
        let clock = Arc::clone(store);
        let webhooks = Webhooks::new(private, Arc::new(move || clock.now()));
        let webhooks = webhooks.map_err(|why| anyhow!("webhooks cannot be sent: {why}"))?;
        Ok(NodeSinks { webhooks, nats: self.nats.as_deref().map(Nats::new), redis })
    }

    /// Where providers are asked.
    fn status(&self) -> Result<Option<Arc<StatusEndpoints>>> {
        if self.payment_status.is_empty() && self.payment_status_keys.is_empty() {
            return Ok(None);
        }
        let addresses =
            pairs("payment status", "PROVIDER=URL", self.payment_status.iter().map(String::as_str))?;
        let keys = self.payment_status_keys.iter().map(|Hidden(text)| text.as_str());
        let keys = pairs("payment status key", "PROVIDER=KEY", keys)?;
        Ok(Some(Arc::new(StatusEndpoints::new(&addresses, &keys)?)))
    }

    /// The providers' secrets. Checked here and not by the parser of arguments, whose message would show a
    /// secret that is misspelled.
    pub(crate) fn payment_secrets(&self) -> Result<Vec<(String, String)>> {
        let secrets = self.payment_secrets.iter().map(|Hidden(text)| text.as_str());
        pairs("payment secret", "PROVIDER=SECRET", secrets)
    }
}

/// Takes pairs apart. A message names the place and never the text, which may be a secret.
fn pairs<'t>(what: &str, form: &str, texts: impl Iterator<Item = &'t str>) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    for (place, text) in (1_usize..).zip(texts) {
        match text.split_once('=') {
            Some((provider, value)) if !provider.is_empty() && !value.is_empty() => {
                pairs.push((provider.to_owned(), value.to_owned()));
            }
            Some(_) | None => bail!("{what} {place} is not {form}"),
        }
    }
    Ok(pairs)
}

/// Runs until it is told to stop.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    log_to_stderr(args.log_format, &args.log)?;
    let Checked { config, database, redis, tls, state, status } = args.checked()?;
    let store = database.open(random_id()?).await?;
    state_file::check(&*store, &state, random_id()?).await?;
    let listener = listen(args.listen)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    if args.auth == Auth::On {
        first_key(&*store).await?;
    }
    let is_worker = args.has(NodeRole::Worker);
    let engine_config = holdfast_engine::Config {
        is_worker,
        cache_landing_rate: args.cache_landing_rate,
        reconcile_interval: seconds(args.reconcile_seconds),
        reconcile_full_interval: seconds(args.reconcile_full_seconds),
        reconcile_share_percent: args.reconcile_share_percent,
        ..holdfast_engine::Config::default()
    };
    let engine = Engine::new(Arc::clone(&store), Arc::new(UuidV7), engine_config);
    if let Some(status) = status {
        engine.ask_providers(status);
    }
    if let Some(redis) = &redis {
        engine.use_cache(Arc::clone(redis) as _);
    }
    engine.use_sinks(Arc::new(args.sinks(&store, redis)?));
    let router = holdfast_server::router(engine.clone(), &config);
    let scheme = if tls.is_some() { "https" } else { "http" };
    if args.auth == Auth::On && tls.is_none() && !address.ip().is_loopback() {
        tracing::warn!("keys come in the clear: set --tls-cert and --tls-key, or end TLS at a proxy");
    }
    // Heard from before anybody knows that the server is there: a signal that nobody hears would end it.
    let signals = Signals::hear()?;
    if let Some(tls) = &tls {
        tokio::spawn(renew(Arc::clone(tls), signal(SignalKind::hangup())?));
    }
    output::print(&format!("listening on {scheme}://{address}"))?;
    notify::ready(&address.to_string());
    // What waits since the last run is not in the way of being there.
    engine.start_workers();
    let witness = state_file::Keeper::start(Arc::clone(&store), state);
    let stop = stop(signals, &engine, config.limits.drain_timeout);
    let metrics = engine.metrics();
    match tls {
        Some(tls) => {
            holdfast_server::serve_tls(listener, router, &config.limits, metrics, &tls, stop).await?
        }
        None => holdfast_server::serve(listener, router, &config.limits, metrics, stop).await?,
    }
    if store.health().is_err() {
        bail!("a flush failed; start again to read what is truly on disk");
    }
    engine.drain(config.limits.drain_timeout).await.context("lanes did not finish in time")?;
    witness.finish().await;
    Ok(ExitCode::SUCCESS)
}

/// The signals that ask a server to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn hear() -> Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }
}

/// Waits for a signal to stop, or for a store that can no longer write. From then on nothing new is taken.
async fn stop(signals: Signals, engine: &Engine, deadline: Duration) -> Result<()> {
    let Signals { mut terminate, mut interrupt } = signals;
    let mut health = tokio::time::interval(HEALTH_INTERVAL);
    // Where nobody listens it ticks all the same, and nobody is told.
    let mut watchdog = tokio::time::interval(notify::watchdog().unwrap_or(HEALTH_INTERVAL));
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = watchdog.tick() => if notify::watchdog().is_some() { notify::alive() },
            _ = health.tick() => if engine.store().health().is_err() { break },
        }
    }
    notify::stopping();
    tracing::info!("stopping: nothing new is taken, what has begun is finished");
    let engine = engine.clone();
    // Requests that wait for a lane and the lanes themselves finish side by side.
    tokio::spawn(async move { engine.drain(deadline).await });
    tokio::spawn(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        // Asked twice: at once. What was not answered is in the log whole or not there.
        std::process::exit(i32::from(output::CANNOT_RUN));
    });
    Ok(())
}

/// Connections that the kernel keeps until they are accepted; the kernel's own limit (`somaxconn`) still holds.
/// A rush opens thousands at once, and one too many is only tried again after a second.
const BACKLOG: i32 = 4_096;

/// Listens, with room for a rush.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

fn log_filter(filter: &str) -> Result<tracing_subscriber::EnvFilter> {
    tracing_subscriber::EnvFilter::try_new(filter).context("the log's filter")
}

fn log_to_stderr(format: LogFormat, filter: &str) -> Result<()> {
    let filter = log_filter(filter)?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no randomness: {error}"))?;
    Ok(bytes)
}

pub(crate) fn random_id() -> Result<u128> {
    random::<16>().map(u128::from_be_bytes)
}

/// Makes a key if there is none with which others could be made, and shows it this once.
async fn first_key(store: &dyn Store) -> Result<()> {
    let new = NewKey::random().map_err(|error| anyhow!("no randomness: {error}"))?;
    let create = CreateKey {
        id: new.id.clone(),
        name: "first admin".to_owned(),
        role: Role::Admin,
        scope: Scope::All,
        secret_sha256: new.secret_sha256,
        expires_at: None,
        via: None,
    };
    if store.create_first_key(create).await? {
        output::print(&format!("admin key, shown this once: {}", new.text()))?;
    }
    Ok(())
}

/// Takes a new certificate when it is there: on SIGHUP, and when the files have changed. What cannot be used
/// is complained about, and the old one stays.
async fn renew(tls: Arc<Tls>, mut hangup: Signal) {
    let mut look = tokio::time::interval(CERTIFICATE_INTERVAL);
    loop {
        let is_asked = tokio::select! {
            _ = hangup.recv() => true,
            _ = look.tick() => false,
        };
        let tls = Arc::clone(&tls);
        match tokio::task::spawn_blocking(move || tls.reload(is_asked)).await {
            Ok(Ok(true)) => tracing::info!("the certificate was replaced"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => tracing::error!(%error, "the certificate stays as it was"),
            Err(_) => tracing::error!("reading the certificate panicked"),
        }
    }
}

/// How long that is; none for 0.
fn seconds(seconds: u32) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
}
