//! `holdfast serve`: the server.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use holdfast_engine::{Engine, UuidV7};
use holdfast_server::{Auth as ServerAuth, Config, Limits, Secret};
use holdfast_store::Store;
use tokio::signal::unix::{SignalKind, signal};

use crate::{database, output};

/// How often the store's health is looked at.
const HEALTH_INTERVAL: Duration = Duration::from_millis(200);

/// Whether clients need keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Auth {
    /// Every request needs a key
    On,
    /// Nobody is asked; only on a loopback address
    Off,
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
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "HOLDFAST_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// The authority
    #[arg(long, env = "HOLDFAST_DATABASE", default_value = "sqlite:holdfast.db", value_name = "URL")]
    pub(crate) database: String,
    /// Whether clients need keys
    #[arg(long, env = "HOLDFAST_AUTH", value_enum, default_value_t = Auth::On)]
    pub(crate) auth: Auth,
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
    /// How the log on standard error is written
    #[arg(long, env = "HOLDFAST_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// Text that must not be seen in messages or logs.
#[derive(Clone)]
pub(crate) struct Hidden(String);

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

impl Args {
    /// The providers' secrets. Checked here and not by the parser of arguments, whose message would show a
    /// secret that is misspelled.
    pub(crate) fn payment_secrets(&self) -> Result<Vec<(String, String)>> {
        let mut secrets = Vec::new();
        for (place, Hidden(text)) in (1_usize..).zip(&self.payment_secrets) {
            let (provider, secret) = text
                .split_once('=')
                .with_context(|| format!("payment secret {place} is not PROVIDER=SECRET"))?;
            if provider.is_empty() || secret.is_empty() {
                bail!("payment secret {place} is not PROVIDER=SECRET");
            }
            secrets.push((provider.to_owned(), secret.to_owned()));
        }
        Ok(secrets)
    }
}

/// Runs until it is told to stop.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    log_to_stderr(args.log_format);
    let database = database::Url::parse(&args.database)?;
    let mut payment_secrets: BTreeMap<String, Vec<Secret>> = BTreeMap::new();
    for (provider, secret) in args.payment_secrets()? {
        payment_secrets.entry(provider).or_default().push(Secret::new(secret));
    }
    let limits = Limits::default();
    let mut config = Config { listen: args.listen, auth: ServerAuth::Off, payment_secrets, limits };
    if args.auth == Auth::On {
        // Which key is known only when the store is open; whether one is needed must be checked before.
        config.auth = ServerAuth::AdminKey { sha256: [0; 32] };
    }
    config.check()?;
    let store = database.open(random_id()?)?;
    let listener =
        TcpListener::bind(args.listen).with_context(|| format!("cannot listen on {}", args.listen))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    if args.auth == Auth::On {
        config.auth = ServerAuth::AdminKey { sha256: admin_key(&*store).await? };
    }
    let engine = Engine::new(Arc::clone(&store), Arc::new(UuidV7), holdfast_engine::Config::default());
    engine.start_workers();
    let router = holdfast_server::router(engine.clone(), &config);
    output::print(&format!("listening on http://{address}"))?;
    let stop = stop(&engine, config.limits.drain_timeout);
    holdfast_server::serve(listener, router, &config.limits, stop).await?;
    if store.health().is_err() {
        bail!("a flush failed; start again to read what is truly on disk");
    }
    engine.drain(config.limits.drain_timeout).await.context("lanes did not finish in time")?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for a signal to stop, or for a store that can no longer write. From then on nothing new is taken.
async fn stop(engine: &Engine, deadline: Duration) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut health = tokio::time::interval(HEALTH_INTERVAL);
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = health.tick() => if engine.store().health().is_err() { break },
        }
    }
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

fn log_to_stderr(format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("HOLDFAST_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().init(),
    }
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no randomness: {error}"))?;
    Ok(bytes)
}

fn random_id() -> Result<u128> {
    random::<16>().map(u128::from_be_bytes)
}

/// The hash of the admin key; on the first start a new key, shown this once.
async fn admin_key(store: &dyn Store) -> Result<[u8; 32]> {
    if let Some(sha256) = store.admin_key().await? {
        return Ok(sha256);
    }
    let mut key = String::from("hfk_");
    for byte in random::<32>()? {
        write!(key, "{byte:02x}")?;
    }
    let ServerAuth::AdminKey { sha256 } = ServerAuth::admin_key(&key) else { bail!("no key was made") };
    if store.create_admin_key(sha256).await? {
        output::print(&format!("admin key, shown this once: {key}"))?;
    }
    Ok(sha256)
}
