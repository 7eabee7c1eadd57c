//! Imports of stock files.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::command::{Outcome, Signed};
use holdfast_core::id::{CampaignId, ImportId, Operator};
use holdfast_core::import::{Import, ImportCounts, ImportMode, RowDone, RowReport};
use holdfast_core::refusal::Refusal;
use holdfast_engine::Engine;
use holdfast_wire::{Code, ImportLineView, ImportView};

use crate::answer::{json, made, unexpected};
use crate::app::App;
use crate::auth::Caller;
use crate::edge::Patience;
use crate::extract::whole_file;
use crate::input::field::TEXT_CHARS_MAX;
use crate::input::query::Query;
use crate::input::report::Located;
use crate::input::stock_file::{self, FileFault};
use crate::openapi::parameters::ImportParameters;
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::{Problem, Subject};

problems! {
    /// Problems of an import.
    ImportProblems = ANY, KEYED, QUERY, WRITE, NAMED,
        &[Code::InvalidQuantity, Code::UnknownSku, Code::StockInUse, Code::Frozen, Code::Conflict, Code::KeyMismatch];
}

/// What the query says.
struct Asked {
    campaign: CampaignId,
    mode: ImportMode,
    id: Option<ImportId>,
    dry_run: bool,
    signed: Signed,
}

/// Imports a stock file, whole or not at all
///
/// CSV in UTF-8 with a header: `sku, location, quantity`, and for counts `counted_at, basis, shipped`. The same file
/// again changes nothing. Every fault is told with its `line` and `column`.
#[utoipa::path(
    post, path = "/v1/imports/stock", tag = "pools",
    params(ImportParameters),
    request_body(content = String, content_type = "text/csv"),
    responses(
        (status = 201, description = "Imported.", body = ImportView),
        (status = 200, description = "A dry run, or imported before.", body = ImportView, headers(("Idempotent-Replayed" = String, description = "`true`: it was imported before."))),
        ImportProblems
    )
)]
pub(crate) async fn import_stock(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
    Extension(patience): Extension<Patience>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = read_query(query.as_deref(), &caller)?;
    caller.allow(&asked.campaign)?;
    let importing = app.admit_import()?;
    let permit = app.admit()?;
    patience.extend(app.limits().import_timeout.saturating_mul(2));
    let bytes = whole_file(request, &app).await?;
    let work = |engine: Engine| async move {
        let (file, outcome) = run(engine, asked, bytes.to_vec()).await?;
        drop(importing);
        answer(&file, outcome)
    };
    app.write(permit, work).await
}

/// Reads the file beside everything else: it may be long.
async fn run(engine: Engine, asked: Asked, bytes: Vec<u8>) -> Result<(Import, Outcome), Problem> {
    let read = tokio::task::spawn_blocking(move || read_file(asked, &bytes));
    let import = read.await.unwrap_or_else(|_| Err(Problem::internal("the file could not be read")))?;
    let outcome = engine.import(import.clone()).await?;
    Ok((import, outcome))
}

fn read_file(asked: Asked, bytes: &[u8]) -> Result<Import, Problem> {
    let Asked { campaign, mode, id, dry_run, signed } = asked;
    let rows = stock_file::read(bytes, mode).map_err(Problem::of_file)?;
    let digest = stock_file::digest(campaign.as_str(), mode, &rows);
    let id = id.map_or_else(|| id_of(&digest), Ok)?;
    Ok(Import { id, campaign, mode, digest, rows, dry_run, signed })
}

/// The key of a file that is given none: what it says.
fn id_of(digest: &[u8; 32]) -> Result<ImportId, Problem> {
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    ImportId::new(&format!("sha256-{hex}")).map_err(|_| Problem::internal("a key that is none"))
}

fn read_query(query: Option<&str>, caller: &Caller) -> Result<Asked, Problem> {
    let mut query = Query::new(query)?;
    let campaign = query.id::<CampaignId>("campaign_id");
    let mode = query.word("mode", ImportMode::parse);
    let id = query.id("import_id");
    let dry_run = query.flag("dry_run");
    let operator = query.id::<Operator>("operator");
    let reason = query.word("reason", |text| {
        let is_good = text.chars().count() <= TEXT_CHARS_MAX && !text.chars().any(char::is_control);
        is_good.then(|| text.to_owned())
    });
    let campaign = query.finish(Some(campaign))?.ok_or_else(|| {
        Problem::of_fault(Located::new("/query/campaign_id", Code::InvalidValue, "must name the campaign"))
    })?;
    let actor = operator.map_or_else(|| Arc::clone(caller.actor()), |operator| operator.as_str().into());
    let signed = Signed { via: caller.via(), ..Signed::new(actor, reason.unwrap_or_default()) };
    let (mode, dry_run) = (mode.unwrap_or(ImportMode::Open), dry_run.unwrap_or(false));
    Ok(Asked { campaign, mode, id, dry_run, signed })
}

fn answer(file: &Import, outcome: Outcome) -> Result<Response, Problem> {
    match outcome {
        Outcome::Imported { counts, rows, repeated } => {
            let view = view(file, counts, &rows, repeated);
            if file.dry_run && !repeated {
                return json(StatusCode::OK, &view);
            }
            made(repeated, &view)
        }
        Outcome::Refused { refusal: Refusal::Rows(faults), .. } => {
            Err(Problem::of_file(faults.iter().take(stock_file::FAULTS_MAX).map(FileFault::of_row).collect()))
        }
        Outcome::Refused { refusal, recorded, repeated, order } => {
            Err(match Problem::refused(&refusal, recorded, repeated, order, Subject::Named) {
                problem if refusal == Refusal::UnknownCampaign => problem.at("/query/campaign_id"),
                problem => problem,
            })
        }
        other @ (Outcome::Order { .. }
        | Outcome::Pool { .. }
        | Outcome::Adjusted { .. }
        | Outcome::Transferred { .. }
        | Outcome::Proposed { .. }
        | Outcome::Epoch { .. }
        | Outcome::Repaired { .. }
        | Outcome::Miss(_)
        | Outcome::Elsewhere(_)
        | Outcome::Outdated
        | Outcome::NotDue(_)) => Err(unexpected(&other)),
    }
}

fn view(file: &Import, counts: ImportCounts, rows: &[RowReport], replayed: bool) -> ImportView {
    let ImportCounts { rows: count, units, opened, unchanged, adjusted } = counts;
    let lines = file.rows.iter().zip(rows).map(|(row, report)| ImportLineView {
        line: report.line,
        sku: row.sku.to_string(),
        location: row.location.to_string(),
        pool_id: (!file.dry_run || report.done != RowDone::Opened).then(|| report.pool.to_string()),
        outcome: report.done.as_str().into(),
        delta: report.delta,
    });
    ImportView {
        import_id: file.id.to_string(),
        campaign_id: file.campaign.to_string(),
        mode: file.mode.as_str().into(),
        dry_run: file.dry_run,
        replayed,
        rows: count,
        units,
        opened,
        unchanged,
        adjusted,
        lines: lines.collect(),
    }
}
