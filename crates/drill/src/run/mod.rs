//! One run: the sale is set up, driven and broken; when all is whole and at rest again, it is judged.

mod crew;
mod faults;
mod opening;
mod read;
mod rest;
mod series;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use holdfast_client::{Client, Options};
use tokio::sync::watch;

use self::crew::Crew;
use self::faults::Faults;
use crate::audit::{BREACHES_MAX, Case, Facts, Findings, audit};
use crate::deployment::{Deployment, Kind};
use crate::history::{Asked, Exchange};
use crate::load::{BUYERS_MAX, ORDERS, Pace, Way};
use crate::outcome::{Breach, BucketFigures, Environment, Generator, InvariantVerdict, Outcome, Parameters};
use crate::sale::Sale;
use crate::scenario::Scenario;

/// How much longer than its holds and its queue a sale may take to come to its end.
const MARGIN: Duration = Duration::from_secs(30);

/// With what a scenario is run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The scenario.
    pub scenario: &'static Scenario,
    /// What all chances come from.
    pub seed: u64,
    /// How long orders come, in seconds.
    pub seconds: u32,
    /// How many come in a second.
    pub orders_a_second: f64,
    /// Most connections.
    pub connections: usize,
    /// How many processes share the load; this one is the first.
    pub processes: u32,
    /// The program of the others: this one's own.
    pub program: PathBuf,
    /// Orders that are stored before.
    pub stored_orders: u64,
    /// The campaign; nobody has used it before.
    pub campaign: String,
    /// When it begins, RFC 3339.
    pub began_at: String,
    /// Whom nodes behind `https://` may be vouched for by, in PEM form.
    pub ca_pem: Option<Vec<u8>>,
    /// Whether the deployment is the drill's own.
    pub private: bool,
}

/// What came of a run.
#[derive(Debug)]
pub struct Drilled {
    /// The outcome.
    pub outcome: Outcome,
    /// What the history belongs to.
    pub asked: Asked,
    /// Everything that was asked and told.
    pub history: Vec<Exchange>,
}

/// Why a deployment cannot have a scenario, if so.
pub fn cannot(scenario: &Scenario, deployment: &dyn Deployment) -> Option<String> {
    let kind = deployment.kind();
    if scenario.shop.pools_on(kind).is_empty() {
        return Some("it needs a cache, and there is none".to_owned());
    }
    let can = |step: &crate::scenario::Step| deployment.can(step.fault).err().map(|why| (step.fault, why));
    scenario.steps_on(kind).iter().find_map(can).map(|(fault, why)| format!("{}: {why}", fault.name()))
}

/// Runs a scenario. An error says that it could not be run; what was broken is whole again all the same.
pub async fn run(
    plan: &Plan,
    deployment: Arc<dyn Deployment>,
    stop: watch::Receiver<bool>,
) -> Result<Drilled> {
    if let Some(why) = cannot(plan.scenario, deployment.as_ref()) {
        bail!("{} cannot be run here: {why}", plan.scenario.name);
    }
    let (kind, nodes) = (deployment.kind(), deployment.nodes());
    let pace = (plan.seconds, plan.orders_a_second);
    let sale = Sale::new(plan.scenario, kind, plan.campaign.clone(), plan.seed, pace);
    let clients = clients(&nodes, deployment.key(), plan.ca_pem.as_deref())?;
    let client = clients.first().context("a deployment needs a node")?;
    opening::store(client, &sale, plan.stored_orders).await?;
    opening::open(&clients, &sale).await?;
    let way = Way {
        nodes: nodes.clone(),
        key: deployment.key(),
        ca_pem: plan.ca_pem.clone(),
        connections: plan.connections,
        buyers_max: BUYERS_MAX,
        place_path: ORDERS,
    };
    let mut crew = Crew::begin(plan, &sale, kind, &way).await?;
    let (pace, windows) = drive(plan, &sale, &mut crew, Arc::clone(&deployment), stop).await?;
    let ended = Instant::now();
    let rests = rest::until(patience(&sale), async || rest::is_at_rest(client, &sale.campaign).await).await;
    let drained_after_ms = u64::try_from(ended.elapsed().as_millis()).unwrap_or(u64::MAX);
    let history = crew.close().await?;
    let facts = match rests {
        Ok(_) => read::facts(client, &sale.campaign).await,
        Err(why) => Err(why),
    };
    let verified = deployment.verify().await.context("the authority cannot be verified")?;
    let environment = Environment {
        deployment: kind.map_or("unknown", Kind::name).to_owned(),
        nodes: nodes.len(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        private: plan.private,
    };
    let asked = Asked {
        scenario: plan.scenario.name.to_owned(),
        campaign: sale.campaign.clone(),
        began_at: plan.began_at.clone(),
        environment,
        parameters: parameters(plan, &sale),
        windows,
    };
    // A deployment that does not come back by itself has failed: that is a finding, too.
    let (facts, findings) = match facts {
        Ok(facts) => {
            let findings = judge(plan.scenario, &sale, &asked, &history, &facts);
            opening::close(client, &sale.campaign).await?;
            (facts, findings)
        }
        Err(why) => (Facts::default(), Findings::unreadable(&format!("{why:#}"))),
    };
    let measured = Measured { pace, drained_after_ms, verified: verified.unwrap_or_default() };
    let outcome = outcome(&asked, &history, &facts, findings, measured);
    Ok(Drilled { outcome, asked, history })
}

/// Judges a history that was kept once more, by what the authority says now.
pub async fn check(
    asked: &Asked,
    history: &[Exchange],
    target: &str,
    key: Option<String>,
    ca_pem: Option<Vec<u8>>,
) -> Result<Outcome> {
    let scenario = Scenario::named(&asked.scenario);
    let scenario = scenario.with_context(|| format!("there is no scenario {:?}", asked.scenario))?;
    let kind = Kind::named(&asked.environment.deployment);
    let Parameters { seed, seconds, orders_a_second, .. } = asked.parameters;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was written from whole seconds"
    )]
    let pace = (seconds as u32, orders_a_second);
    let sale = Sale::new(scenario, kind, asked.campaign.clone(), seed, pace);
    let clients = clients(&[target.to_owned()], key, ca_pem.as_deref())?;
    let client = clients.first().context("name a node")?;
    let mut facts = read::facts(client, &sale.campaign).await?;
    // A drill closes its campaign when it has judged it.
    facts.is_open = true;
    let findings = judge(scenario, &sale, asked, history, &facts);
    Ok(outcome(asked, history, &facts, findings, Measured::default()))
}

/// A client of each node.
fn clients(nodes: &[String], key: Option<String>, ca_pem: Option<&[u8]>) -> Result<Vec<Client>> {
    let options = Options { key, ca_pem: ca_pem.map(<[u8]>::to_vec), ..Options::default() };
    nodes.iter().map(|node| Ok(Client::with_options(node, options.clone())?)).collect()
}

/// How long a sale may take to come to its end when nobody asks for anything any more.
fn patience(sale: &Sale) -> Duration {
    let hold = Duration::from_secs(u64::from(sale.shop.hold_seconds).saturating_mul(2));
    let grace = Duration::from_millis(sale.shop.release_grace_ms.into());
    let queue = Duration::from_millis(opening::QUEUE_WAIT_MS);
    hold + grace + queue + Duration::from_secs(opening::REVIEW_SECONDS) + MARGIN
}

/// Lets the load and the faults go side by side, to the end of both.
async fn drive(
    plan: &Plan,
    sale: &Sale,
    crew: &mut Crew,
    deployment: Arc<dyn Deployment>,
    stop: watch::Receiver<bool>,
) -> Result<(Pace, Vec<crate::outcome::Window>)> {
    let lasts = Duration::from_secs(plan.seconds.into());
    let steps = plan.scenario.steps_on(deployment.kind());
    let zero = Instant::now();
    let faults = Faults { deployment, zero, lasts, stop: stop.clone(), turn: Arc::default() };
    let breaking = tokio::spawn(faults.carry_out(steps));
    let ends = zero + lasts + patience(sale);
    let pace = crew.drive(ends, stop).await;
    let windows = breaking.await.context("the faults died")??;
    Ok((pace?, windows))
}

fn judge(scenario: &Scenario, sale: &Sale, asked: &Asked, history: &[Exchange], facts: &Facts) -> Findings {
    audit(&Case { scenario, sale, windows: &asked.windows, history, facts })
}

fn parameters(plan: &Plan, sale: &Sale) -> Parameters {
    let mut paths: Vec<&str> = sale.goods.iter().map(|good| good.path).collect();
    paths.dedup();
    let buckets = sale.goods.iter().map(|good| good.buckets).max();
    Parameters {
        seed: plan.seed,
        seconds: plan.seconds.into(),
        orders_a_second: plan.orders_a_second,
        connections: plan.connections,
        processes: usize::try_from(plan.processes).unwrap_or(usize::MAX),
        path: paths.join(", "),
        pools: u32::try_from(sale.goods.len()).unwrap_or(u32::MAX),
        buckets: buckets.unwrap_or_default(),
        stock: sale.stock(),
        hot_share: if sale.goods.len() < 2 { 1.0 } else { f64::from(sale.shop.hot_percent) / 100.0 },
        accounts: sale.accounts(),
        account_limit: sale.shop.account_limit.map(u64::from),
        hold_seconds: sale.shop.hold_seconds.into(),
        stored_orders: plan.stored_orders,
    }
}

/// What is measured beside the history.
#[derive(Default)]
struct Measured {
    pace: Pace,
    drained_after_ms: u64,
    verified: Vec<InvariantVerdict>,
}

fn outcome(
    asked: &Asked,
    history: &[Exchange],
    facts: &Facts,
    findings: Findings,
    Measured { pace, drained_after_ms, verified }: Measured,
) -> Outcome {
    let mut answers: BTreeMap<String, u64> = BTreeMap::new();
    for exchange in history {
        let count = answers.entry(exchange.label()).or_default();
        *count = count.saturating_add(1);
    }
    let mut invariants = findings.verdicts();
    let mut breaches_count = findings.count();
    let mut breaches = findings.breaches;
    for verdict in verified {
        let found = verdict.breaches.unwrap_or_default();
        if found > 0 && breaches.len() < BREACHES_MAX {
            let (expected, actual) =
                (verdict.name.clone(), format!("{found} breaches by the authority's own rows"));
            breaches.push(Breach {
                code: verdict.code.clone(),
                subject: "verify".to_owned(),
                expected,
                actual,
            });
        }
        breaches_count = breaches_count.saturating_add(found);
        match invariants.iter_mut().find(|ours| ours.code == verdict.code) {
            Some(ours) => {
                let both =
                    verdict.breaches.map(|found| ours.breaches.unwrap_or_default().saturating_add(found));
                ours.breaches = both.or(ours.breaches);
            }
            None => invariants.push(verdict),
        }
    }
    Outcome {
        scenario: asked.scenario.clone(),
        ok: breaches_count == 0,
        began_at: asked.began_at.clone(),
        environment: asked.environment.clone(),
        parameters: asked.parameters.clone(),
        seconds: series::seconds(history),
        windows: asked.windows.clone(),
        answers,
        buckets: buckets(facts),
        invariants,
        breaches,
        breaches_count,
        recovered_after_ms: series::recovered_after_ms(history, &asked.windows),
        drained_after_ms,
        generator: Generator {
            due: pace.due,
            sent: pace.sent,
            late_p99_us: pace.late_p99_us,
            is_limit: pace.is_limit(),
        },
    }
}

fn buckets(facts: &Facts) -> Vec<BucketFigures> {
    let figure = |value: i64| u64::try_from(value).unwrap_or_default();
    let of_pool = |pool: &crate::audit::facts::PoolFact| {
        let sku = pool.sku.clone();
        let of_bucket = move |(number, bucket): (u32, &crate::audit::facts::BucketFact)| BucketFigures {
            sku: sku.clone(),
            bucket: number,
            available: figure(bucket.units.available),
            held: figure(bucket.units.held),
            sold: figure(bucket.units.sold),
        };
        (0_u32..).zip(&pool.buckets).map(of_bucket).collect::<Vec<_>>()
    };
    facts.pools.iter().flat_map(of_pool).collect()
}
