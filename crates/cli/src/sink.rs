//! `holdfast sink`: where a running server delivers order events.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use holdfast_wire::{ChangeSinkRequest, PutSinkRequest, ReplaySinkRequest, SinkView};

use crate::output::{self, Format, Target};

/// What to do with sinks.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(ListArgs),
    Show(ShowArgs),
    Put(PutArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Replay(ReplayArgs),
    Test(TestArgs),
    DeadLetters(DeadLettersArgs),
    Delete(DeleteArgs),
}

/// How events reach a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// By signed HTTP requests
    Webhook,
    /// Into a stream of NATS JetStream
    Nats,
    /// Into a stream of Redis
    Redis,
    /// The consumer comes for them
    Pull,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Nats => "nats",
            Self::Redis => "redis",
            Self::Pull => "pull",
        }
    }
}

/// What every command takes.
#[derive(Debug, clap::Args)]
struct Common {
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Who does it and why.
#[derive(Debug, clap::Args)]
struct Signed {
    /// Why
    #[arg(long)]
    reason: Option<String>,
    /// Who; the key if absent
    #[arg(long)]
    operator: Option<String>,
}

impl Signed {
    fn request(self) -> ChangeSinkRequest {
        ChangeSinkRequest { reason: self.reason, operator: self.operator }
    }
}

/// List the sinks
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast sink list --target http://127.0.0.1:8080")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    common: Common,
}

/// Show a sink and how it goes
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast sink show erp --target http://127.0.0.1:8080")]
pub(crate) struct ShowArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    common: Common,
}

/// Make a sink or change its settings; what is left out gets its default
#[derive(Debug, clap::Args)]
#[command(after_help = "A secret that the server makes is shown this once.\n\n\
                        Example:\n  holdfast sink put erp --kind webhook --to https://erp.example/events --target \
                        http://127.0.0.1:8080")]
pub(crate) struct PutArgs {
    /// Its name: a-z, 0-9, - and _
    name: String,
    /// How events reach it
    #[arg(long, value_enum)]
    kind: Kind,
    /// Where to: the address of a webhook, the subject in NATS, the stream in Redis
    #[arg(long)]
    to: Option<String>,
    /// From when on a new sink is told: beginning, now, or a time
    #[arg(long)]
    from: Option<String>,
    /// Which events, such as held,sold; all without it
    #[arg(long, value_delimiter = ',')]
    types: Vec<String>,
    /// Most events in one delivery
    #[arg(long)]
    batch_max: Option<u32>,
    /// How long an attempt may take
    #[arg(long)]
    timeout_ms: Option<u32>,
    /// How often an event is refused, while others are taken, until it is parked
    #[arg(long)]
    attempts_max: Option<u32>,
    /// How long to wait before the next attempts, such as 1,5,30
    #[arg(long, value_delimiter = ',')]
    retry_seconds: Vec<u32>,
    /// How long a receiver may take nothing until the sink is disabled
    #[arg(long)]
    disable_after_seconds: Option<u32>,
    #[command(flatten)]
    common: Common,
}

/// Deliver nothing for now
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  holdfast sink pause erp --reason 'moving' --target http://127.0.0.1:8080"
)]
pub(crate) struct PauseArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    signed: Signed,
    #[command(flatten)]
    common: Common,
}

/// Deliver again, the backlog first
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast sink resume erp --target http://127.0.0.1:8080")]
pub(crate) struct ResumeArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    signed: Signed,
    #[command(flatten)]
    common: Common,
}

/// Deliver again what was delivered from a time on, or what is parked
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  holdfast sink replay erp --from dead_letters --target http://127.0.0.1:8080"
)]
pub(crate) struct ReplayArgs {
    /// Its name
    name: String,
    /// From where: dead_letters, beginning, or a time such as 2026-11-30T12:00:00Z
    #[arg(long)]
    from: String,
    #[command(flatten)]
    signed: Signed,
    #[command(flatten)]
    common: Common,
}

/// Send a signed test event and tell what the receiver said
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status 1 if the receiver did not take it.\n\n\
                        Example:\n  holdfast sink test erp --target http://127.0.0.1:8080")]
pub(crate) struct TestArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    common: Common,
}

/// List events that a sink did not take while it took others
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast sink dead-letters erp --target http://127.0.0.1:8080")]
pub(crate) struct DeadLettersArgs {
    /// Its name
    name: String,
    /// Only those that are parked, waiting, or delivered after all
    #[arg(long)]
    state: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Forget a sink and where it stands
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  holdfast sink delete erp --reason 'replaced' --target http://127.0.0.1:8080"
)]
pub(crate) struct DeleteArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    signed: Signed,
    #[command(flatten)]
    common: Common,
}

/// Asks the server.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::List(args) => {
            let sinks = args.common.target.client()?.sinks().await?;
            match args.common.format {
                Format::Json => output::print_json(&sinks.items)?,
                Format::Text => sinks.items.iter().try_for_each(|sink| output::print(&line(sink)))?,
            }
        }
        Command::Show(args) => show(&args.common, &args.common.target.client()?.sink(&args.name).await?)?,
        Command::Put(args) => put(args).await?,
        Command::Pause(PauseArgs { name, signed, common }) => {
            show(&common, &common.target.client()?.pause_sink(&name, &signed.request()).await?)?;
        }
        Command::Resume(ResumeArgs { name, signed, common }) => {
            show(&common, &common.target.client()?.resume_sink(&name, &signed.request()).await?)?;
        }
        Command::Delete(DeleteArgs { name, signed, common }) => {
            show(&common, &common.target.client()?.delete_sink(&name, &signed.request()).await?)?;
        }
        Command::Replay(ReplayArgs { name, from, signed, common }) => {
            let request = ReplaySinkRequest { from, reason: signed.reason, operator: signed.operator };
            show(&common, &common.target.client()?.replay_sink(&name, &request).await?)?;
        }
        Command::Test(args) => return test(args).await,
        Command::DeadLetters(args) => dead_letters(args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn put(args: PutArgs) -> Result<()> {
    let to = |kind| args.to.clone().filter(|_| args.kind == kind);
    let request = PutSinkRequest {
        kind: args.kind.as_str().to_owned(),
        url: to(Kind::Webhook),
        subject: to(Kind::Nats),
        stream: to(Kind::Redis),
        from: args.from,
        types: Some(args.types).filter(|types| !types.is_empty()),
        batch_max: args.batch_max,
        timeout_ms: args.timeout_ms,
        attempts_max: args.attempts_max,
        retry_seconds: Some(args.retry_seconds).filter(|seconds| !seconds.is_empty()),
        disable_after_seconds: args.disable_after_seconds,
        secret: None,
    };
    let made = args.common.target.client()?.put_sink(&args.name, &request).await?;
    match args.common.format {
        Format::Json => output::print_json(&made),
        Format::Text => {
            if let Some(secret) = &made.secret {
                output::print(&format!("secret, shown this once: {secret}"))?;
            }
            output::print(&line(&made.sink))
        }
    }
}

async fn test(args: TestArgs) -> Result<ExitCode> {
    let tested = args.common.target.client()?.test_sink(&args.name).await?;
    match (args.common.format, &tested.error) {
        (Format::Json, _) => output::print_json(&tested)?,
        (Format::Text, None) => output::print(&format!("delivered in {} ms", tested.took_ms))?,
        (Format::Text, Some(why)) => output::print(&format!("not delivered: {why}"))?,
    }
    Ok(output::verdict(tested.delivered))
}

async fn dead_letters(args: DeadLettersArgs) -> Result<()> {
    let client = args.common.target.client()?;
    let letters = client.every_dead_letter(&args.name, args.state.as_deref()).await?;
    match args.common.format {
        Format::Json => output::print_json(&letters),
        Format::Text => letters.iter().try_for_each(|letter| {
            let (pool, bucket, seq) = (&letter.pool_id, letter.bucket, letter.seq);
            let (state, attempts) = (&letter.state, letter.attempts);
            output::print(&format!("{pool}/{bucket}/{seq}  {state}, {attempts} attempts: {}", letter.why))
        }),
    }
}

fn show(common: &Common, sink: &SinkView) -> Result<()> {
    match common.format {
        Format::Json => output::print_json(sink),
        Format::Text => output::print(&line(sink)),
    }
}

fn line(sink: &SinkView) -> String {
    let to = sink.url.as_ref().or(sink.subject.as_ref()).or(sink.stream.as_ref());
    let to = to.map(|to| format!(" {to}")).unwrap_or_default();
    let why = sink.why.as_ref().or(sink.last_error.as_ref().filter(|_| sink.attempts > 0));
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let (behind, parked) = (sink.backlog.entries, sink.parked);
    format!("{}  {:<8} {}{to}, behind {behind}, parked {parked}{why}", sink.name, sink.state, sink.kind)
}
