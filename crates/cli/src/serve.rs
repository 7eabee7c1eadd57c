//! `holdfast serve`: the server.

use std::fmt;
use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

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
    #[expect(dead_code, reason = "used once `run` is wired")]
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
#[expect(clippy::unused_async, reason = "not wired yet")]
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    bail!("not wired yet: {args:?}")
}
