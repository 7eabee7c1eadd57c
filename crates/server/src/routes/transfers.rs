//! Transfers of stock.

use axum::extract::State;
use axum::response::Response;
use holdfast_core::command::Outcome;
use holdfast_core::id::PoolId;
use holdfast_engine::Engine;
use holdfast_store::PoolRow;
use holdfast_wire::{Code, TransferRequest, TransferView};

use super::approvals;
use crate::answer::{made, unexpected};
use crate::app::App;
use crate::auth::Caller;
use crate::extract::WriteBody;
use crate::input::pools::read_transfer;
use crate::input::report::Located;
use crate::openapi::problems::{ANY, KEYED, NAMED, WRITE, problems};
use crate::problem::{Problem, Subject};
use crate::view;

problems! {
    /// Problems of a transfer.
    TransferProblems = ANY, KEYED, WRITE, NAMED,
        &[Code::InvalidQuantity, Code::Frozen, Code::StockInUse, Code::Conflict, Code::KeyMismatch];
}

/// Moves available units to another pool or bucket, by paired ledger entries
#[utoipa::path(
    post, path = "/v1/transfers", tag = "pools",
    request_body = TransferRequest,
    responses(
        (status = 201, description = "Moved.", body = TransferView),
        (status = 202, description = "A second person must agree first: nothing is moved yet.", body = TransferView),
        (status = 200, description = "Moved before with the same content.", body = TransferView, headers(("Idempotent-Replayed" = String, description = "`true`: this was answered before."))),
        TransferProblems
    )
)]
pub(crate) async fn transfer_stock(
    State(app): State<App>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let mut transfer = body.read(read_transfer)?;
    let (from, to) = (transfer.from.pool, transfer.to.pool);
    for (pool, pointer) in [(from, "/from/pool_id"), (to, "/to/pool_id")] {
        caller.allow(&row_at(&app, pool, pointer).await?.pool.campaign)?;
    }
    transfer.signed.via = caller.via();
    let (transfer_id, quantity) = (transfer.transfer_id.to_string(), transfer.quantity);
    let work = |engine: Engine| async move { Ok(engine.transfer(transfer).await?) };
    match app.write(body.permit, work).await? {
        Outcome::Transferred { repeated } => {
            let from = view::pool(&row_at(&app, from, "/from/pool_id").await?);
            let to = view::pool(&row_at(&app, to, "/to/pool_id").await?);
            let state = "applied".into();
            made(repeated, &TransferView { transfer_id, state, quantity, from, to, approval_id: None })
        }
        Outcome::Proposed { approval, repeated } => {
            let from = view::pool(&row_at(&app, from, "/from/pool_id").await?);
            let to = view::pool(&row_at(&app, to, "/to/pool_id").await?);
            let state = approvals::state_of(&app, &approval).into();
            let approval_id = Some(approval.key.as_str().to_owned());
            let view = TransferView { transfer_id, state, quantity, from, to, approval_id };
            approvals::waiting(&app, &approval, repeated, &view)
        }
        Outcome::Refused { refusal, recorded, repeated, order } => {
            Err(Problem::refused(&refusal, recorded, repeated, order, Subject::Quantity))
        }
        other @ (Outcome::Order { .. }
        | Outcome::Pool { .. }
        | Outcome::Adjusted { .. }
        | Outcome::Imported { .. }
        | Outcome::Epoch { .. }
        | Outcome::Repaired { .. }
        | Outcome::Miss(_)
        | Outcome::Elsewhere(_)
        | Outcome::Outdated
        | Outcome::NotDue(_)) => Err(unexpected(&other)),
    }
}

/// The pool that stands there in the body.
/// The pool that a body names, or why there is none.
pub(crate) async fn row_at(app: &App, pool: PoolId, pointer: &str) -> Result<PoolRow, Problem> {
    let missing = || Problem::of_fault(Located::new(pointer, Code::NotFound, "there is no such pool"));
    app.store().pool(pool).await?.ok_or_else(missing)
}
