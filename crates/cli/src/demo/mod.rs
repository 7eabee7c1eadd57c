//! `holdfast demo`: a flash sale in one command, with everything that goes wrong in one, and the proof that
//! nothing was sold twice.

mod plan;
mod result;
mod rush;
mod server;
mod tally;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use holdfast_client::{Client, OrdersQuery, PageQuery, Switch};
use holdfast_server::{Auth, Config, Limits};
use holdfast_wire::{OpenPoolRequest, PolicyRequest, PutCampaignRequest, SwitchRequest};
use indicatif::ProgressBar;
use tokio::signal::unix::{SignalKind, signal};

use self::result::{Facts, Outcome};
use self::rush::{Rush, SKU};
use self::server::Embedded;
use self::tally::{Counts, Tally};
use crate::output::{self, Format};

/// How long an unpaid hold lasts here, in seconds: short, so that some run out during the rush.
const HOLD_SECONDS: u64 = 2;
/// What the release waits after it.
const GRACE_MS: u64 = 200;
/// Most units that one buyer may have.
const ACCOUNT_LIMIT: u64 = 2;
/// Rows that the stock is spread over.
const BUCKETS: u32 = 4;
/// How often the progress is told where there is no terminal to draw a bar on.
const TELL: Duration = Duration::from_secs(2);

/// Run a flash sale on a server of its own and check every answer
#[derive(Debug, clap::Args)]
#[command(after_help = "5,000 buyers make 20,000 attempts at 500 units: some click twice, some hang up \
                        before the answer, some do\nnot pay, some pay too late. Then the invariants are \
                        checked from the rows. Exit status 1 on any breach.\nThe server stays up until it \
                        is interrupted, unless --exit is given.\n\n\
                        Example:\n  holdfast demo\n  holdfast demo --exit --format json")]
pub(crate) struct Args {
    /// End when the sale is over
    #[arg(long)]
    exit: bool,
    /// Where to listen; port 0 takes a free one. There is no authentication, so only a loopback address
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The authority; without it a temporary one that is removed at the end
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[arg(long, hide = true, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    attempts: u32,
    #[arg(long, hide = true, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    buyers: u32,
    #[arg(long, hide = true, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=2_000))]
    units: u64,
}

/// The server's configuration: nobody is asked for a key.
fn config(listen: SocketAddr) -> Config {
    Config {
        listen,
        auth: Auth::Off,
        payment_secrets: std::collections::BTreeMap::new(),
        limits: Limits::default(),
        api: true,
        constant_answer: false,
    }
}

/// Runs the sale, prints what came of it, stays up.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let server = Embedded::start(args.listen, args.database.as_deref()).await?;
    let sold = tokio::select! {
        sold = sell(&server, &args) => Some(sold),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    };
    let Some(sold) = sold else {
        server.stop().await?;
        anyhow::bail!("interrupted");
    };
    // The result is printed also if the server does not stop well.
    let printed = sold.and_then(|outcome| print(&outcome, &args).map(|()| outcome));
    if printed.is_ok() && !args.exit {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
    }
    let stopped = server.stop().await;
    let code = output::verdict(printed?.ok);
    stopped?;
    Ok(code)
}

async fn sell(server: &Embedded, args: &Args) -> Result<Outcome> {
    let client = Client::new(&server.url(), None)?;
    let campaign: Arc<str> = format!("demo-{:08x}", fastrand::u32(..)).into();
    open(&client, &campaign, args.units).await.context("the campaign was not opened")?;
    output::complain(&format!(
        "{} attempts by {} buyers at {} units, at {}",
        args.attempts,
        args.buyers,
        args.units,
        server.url()
    ))?;
    let rush = Rush { client: client.clone(), campaign: Arc::clone(&campaign), tally: Arc::default() };
    let attempts = plan::attempts(args.attempts, args.buyers);
    let start = Instant::now();
    watched(&rush.tally, attempts.len(), rush.run(attempts)).await?;
    let took = start.elapsed();
    compare(&client, &campaign, &rush.tally).await?;
    let settlement = client.settlement(&campaign).await.context("the stock cannot be read")?;
    let report = server.audit().await?;
    let (url, database) = (server.url(), server.database().to_owned());
    let counts = rush.tally.counts().clone();
    Ok(Outcome::new(counts, Facts { url, database, buyers: args.buyers, took, settlement, report }))
}

async fn open(client: &Client, campaign: &str, units: u64) -> Result<()> {
    let policy = PolicyRequest {
        hold_seconds: Some(HOLD_SECONDS),
        release_grace_ms: Some(GRACE_MS),
        account_limit: Some(ACCOUNT_LIMIT),
        late_payment: Some("retake_else_refund".to_owned()),
        ..PolicyRequest::default()
    };
    let request = PutCampaignRequest {
        name: "Demo: the poster".to_owned(),
        policy: Some(policy),
        ..PutCampaignRequest::default()
    };
    client.put_campaign(campaign, &request).await?;
    let pool = OpenPoolRequest {
        campaign_id: campaign.to_owned(),
        sku: SKU.to_owned(),
        location: None,
        supply: units,
        buckets: Some(BUCKETS),
        path: None,
        routing: None,
    };
    client.open_pool(&pool).await?;
    let request = SwitchRequest { reason: "demo".to_owned(), operator: "demo".to_owned() };
    client.switch_campaign(campaign, Switch::Open, &request).await?;
    Ok(())
}

/// Shows how far the work is: a bar on a terminal, else a line now and then.
async fn watched(tally: &Tally, attempts: usize, work: impl Future<Output = Result<()>>) -> Result<()> {
    let bar = output::progress(attempts, "selling");
    let mut tick = tokio::time::interval(if bar.is_hidden() { TELL } else { Duration::from_millis(100) });
    tick.tick().await;
    let mut work = std::pin::pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            _ = tick.tick() => tell(tally, attempts, &bar)?,
        }
    };
    bar.finish_and_clear();
    done
}

fn tell(tally: &Tally, attempts: usize, bar: &ProgressBar) -> Result<()> {
    let counts = tally.counts();
    bar.set_position(counts.answered);
    if bar.is_hidden() {
        let Counts { answered, held, sold, released, .. } = &*counts;
        let (held, ended) = (held.len(), sold.len() + released.len());
        output::complain(&format!(
            "{answered} of {attempts} attempts answered; {held} orders held stock, {ended} have ended"
        ))?;
    }
    Ok(())
}

/// What the buyers were told is what the server shows: sold is sold, released is released, and nothing is
/// held by nobody.
async fn compare(client: &Client, campaign: &str, tally: &Tally) -> Result<()> {
    let mut shown = Vec::new();
    for state in ["sold", "released", "held", "in_review"] {
        shown.push((state, orders_in(client, campaign, state).await?));
    }
    let mut counts = tally.counts();
    if !counts.strange.is_empty() {
        // Somebody did not get an answer, so the two need not be the same.
        return Ok(());
    }
    for (state, shown) in shown {
        let told = match state {
            "sold" => counts.sold.clone(),
            "released" => counts.released.clone(),
            _ => BTreeSet::new(),
        };
        let different = told.symmetric_difference(&shown).count();
        if different > 0 {
            counts.breach(format!("{different} orders are not {state} as the buyers were told"));
        }
    }
    Ok(())
}

async fn orders_in(client: &Client, campaign: &str, state: &str) -> Result<BTreeSet<String>> {
    let query = OrdersQuery {
        campaign_id: Some(campaign.to_owned()),
        state: Some(state.to_owned()),
        ..OrdersQuery::default()
    };
    let mut page = PageQuery { limit: Some(500), cursor: None };
    let mut ids = BTreeSet::new();
    loop {
        let answer = client.orders(&query, &page).await.context("the orders cannot be read")?;
        ids.extend(answer.items.into_iter().map(|order| order.id));
        page.cursor = answer.next_cursor;
        if page.cursor.is_none() {
            return Ok(ids);
        }
    }
}

fn print(outcome: &Outcome, args: &Args) -> Result<()> {
    match (args.format, args.exit) {
        (Format::Json, _) => output::print_json(outcome),
        (Format::Text, true) => output::print(&outcome.text()),
        (Format::Text, false) => output::print(&format!("{}\n\n{}", outcome.text(), outcome.things_to_try())),
    }
}
