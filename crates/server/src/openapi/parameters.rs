//! Parameters that several operations share. Only their schemas are used: the handlers read them strictly
//! by themselves.

#![expect(dead_code, reason = "only the schemas are used")]

use utoipa::IntoParams;

/// A campaign in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct CampaignPath {
    /// The campaign, as its operator named it.
    #[param(min_length = 1, max_length = 128)]
    id: String,
}

/// A bundle in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct BundlePath {
    /// The campaign, as its operator named it.
    #[param(min_length = 1, max_length = 128)]
    campaign_id: String,
    /// What the bundle is sold as.
    #[param(min_length = 1, max_length = 128)]
    sku: String,
}

/// A pool in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct PoolPath {
    /// The pool.
    #[param(format = "uuid")]
    id: String,
}

/// An order in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OrderPath {
    /// The order.
    #[param(format = "uuid")]
    id: String,
}

/// A payment provider in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ProviderPath {
    /// The payment provider.
    #[param(min_length = 1, max_length = 128)]
    provider: String,
}

/// Which page of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParameters {
    /// Most items of the page; 50 if absent.
    #[param(minimum = 1, maximum = 500, required = false)]
    limit: u32,
    /// `next_cursor` of the page before, with the same filters.
    #[param(min_length = 1, max_length = 1_024, required = false)]
    cursor: String,
}

/// Which pools.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PoolFilters {
    /// Only of this campaign.
    #[param(min_length = 1, max_length = 128, required = false)]
    campaign_id: String,
    /// Only of this SKU.
    #[param(min_length = 1, max_length = 128, required = false)]
    sku: String,
    /// Only at this location.
    #[param(min_length = 1, max_length = 128, required = false)]
    location: String,
}

/// Which orders.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OrderFilters {
    /// Only of this campaign.
    #[param(min_length = 1, max_length = 128, required = false)]
    campaign_id: String,
    /// Only with this number.
    #[param(min_length = 1, max_length = 128, required = false)]
    order_no: String,
    /// Only in this state.
    #[param(schema_with = state, required = false)]
    state: String,
    /// Only of this account.
    #[param(min_length = 1, max_length = 128, required = false)]
    account: String,
    /// Only with stock of this pool.
    #[param(format = "uuid", required = false)]
    pool_id: String,
    /// Only where money must go back, or only where none must.
    #[param(required = false)]
    refund_due: bool,
}

/// The states of an order.
fn state() -> utoipa::openapi::schema::Object {
    words(holdfast_core::order::State::ALL.iter().map(|state| state.as_str()))
}

/// One of the core's own words.
fn words(words: impl Iterator<Item = &'static str>) -> utoipa::openapi::schema::Object {
    utoipa::openapi::schema::ObjectBuilder::new()
        .schema_type(utoipa::openapi::schema::Type::String)
        .enum_values(Some(words))
        .build()
}

/// How long to wait for an order.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WaitParameter {
    /// Waits for the end of `queued`: seconds, at most 30, like `30s` or `30`.
    #[param(
        min_length = 1,
        max_length = 3,
        example = "1s",
        pattern = "^([0-9]|[12][0-9]|30)s?$",
        required = false
    )]
    wait: String,
}

/// Longest ticket.
pub(crate) const TICKET_CHARS_MAX: usize = 2_048;

/// What an accepted order's buyer was given.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TicketParameter {
    /// The order's `ticket`: with it any node says what became of an order that only a cache has.
    #[param(min_length = 1, max_length = 2048, required = false)]
    ticket: String,
}

/// Which ledger entries.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LedgerFilters {
    /// Only of this pool.
    #[param(format = "uuid", required = false)]
    pool_id: String,
    /// Only of this order.
    #[param(format = "uuid", required = false)]
    order_id: String,
}

/// Which part of a pool, and as of when.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExplainPoolParameters {
    /// Only this bucket.
    #[param(maximum = 255, required = false)]
    bucket: u32,
    /// Only entries from this number on; then the first of them are told, else the last.
    #[param(minimum = 0, required = false)]
    from_seq: u64,
    /// As of this entry of each bucket.
    #[param(minimum = 0, required = false)]
    to_seq: u64,
    /// As of this time, with its offset.
    #[param(format = DateTime, required = false)]
    at: String,
}

/// A key in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct KeyPath {
    /// The key's id: the part of it that is no secret.
    #[param(min_length = 16, max_length = 16, pattern = "^[a-z0-9]{16}$")]
    id: String,
}

/// A sink in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SinkPath {
    /// Its name.
    #[param(min_length = 1, max_length = 64, pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    name: String,
}

/// A secret of a sink in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SecretPath {
    /// The sink's name.
    #[param(min_length = 1, max_length = 64, pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    name: String,
    /// The secret's id.
    #[param(min_length = 1, max_length = 64)]
    id: String,
}

/// Which parked events.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeadLetterFilters {
    /// Only those that stand so.
    #[param(schema_with = dead_letter_state, required = false)]
    state: String,
}

fn dead_letter_state() -> utoipa::openapi::schema::Object {
    words(holdfast_store::DeadLetterState::ALL.iter().map(|state| state.as_str()))
}

/// Which events.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventFilters {
    /// Whose place is kept by the server.
    #[param(min_length = 1, max_length = 64, pattern = "^[a-z0-9][a-z0-9_-]{0,63}$", required = false)]
    consumer: String,
    /// Where a consumer begins that comes for the first time: at the beginning, or now.
    #[param(schema_with = first_visit, required = false)]
    from: String,
    /// Instead of a consumer: events of this pool.
    #[param(format = "uuid", required = false)]
    pool_id: String,
    /// With `pool_id`: `position` of the answer before, or the number of an entry.
    #[param(min_length = 1, max_length = 4_096, required = false)]
    after: String,
    /// Most events; 50 if absent.
    #[param(minimum = 1, maximum = 500, required = false)]
    limit: u32,
}

fn first_visit() -> utoipa::openapi::schema::Object {
    words(["beginning", "now"].into_iter())
}

/// Which acts.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ActFilters {
    /// Only about this: kind and id, as they are shown.
    #[param(max_length = 140, example = "campaign spring", required = false)]
    subject: String,
}

/// A case in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct CasePath {
    /// The case.
    #[param(format = "uuid")]
    id: String,
}

/// A reconciliation in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct RunPath {
    /// The run.
    #[param(format = "uuid")]
    id: String,
}

/// Which differences.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiscrepancyFilters {
    /// Only in this state.
    #[param(schema_with = discrepancy_state, required = false)]
    state: String,
    /// Only of this class.
    #[param(schema_with = discrepancy_class, required = false)]
    class: String,
}

fn discrepancy_state() -> utoipa::openapi::schema::Object {
    words(holdfast_core::reconcile::DiscrepancyState::ALL.iter().map(|state| state.as_str()))
}

fn discrepancy_class() -> utoipa::openapi::schema::Object {
    words(holdfast_core::reconcile::Class::ALL.iter().map(|class| class.as_str()))
}

/// Which cases.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CaseFilters {
    /// Only in this state.
    #[param(schema_with = case_state, required = false)]
    state: String,
    /// Only of this kind.
    #[param(schema_with = case_kind, required = false)]
    kind: String,
}

fn case_state() -> utoipa::openapi::schema::Object {
    words(holdfast_core::case::CaseState::ALL.iter().map(|state| state.as_str()))
}

fn case_kind() -> utoipa::openapi::schema::Object {
    words(holdfast_core::case::CaseKind::ALL.iter().map(|kind| kind.as_str()))
}

/// A request for a second person in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ApprovalPath {
    /// Its `approval_id`.
    #[param(min_length = 1, max_length = 600)]
    id: String,
}

/// An adjustment in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AdjustmentPath {
    /// Its `adjustment_id`.
    #[param(min_length = 1, max_length = 128)]
    id: String,
}

/// Which requests for a second person.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ApprovalFilters {
    /// Only those that stand so.
    #[param(schema_with = approval_state, required = false)]
    state: String,
    /// Only of this campaign.
    #[param(min_length = 1, max_length = 128, required = false)]
    campaign_id: String,
}

fn approval_state() -> utoipa::openapi::schema::Object {
    words(holdfast_core::approval::ApprovalState::ALL.iter().map(|state| state.as_str()))
}

/// What a stock file is.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImportParameters {
    /// The campaign.
    #[param(min_length = 1, max_length = 128)]
    campaign_id: String,
    /// What its quantities mean: pools `open` with them (the default), they are `inbound`, or a `count`.
    #[param(schema_with = import_mode, required = false)]
    mode: String,
    /// Only judges the file.
    #[param(required = false)]
    dry_run: bool,
    /// The key of the file, global; a hash of what it says if absent.
    #[param(min_length = 1, max_length = 128, required = false)]
    import_id: String,
    /// Who imports it; the key if absent.
    #[param(min_length = 1, max_length = 128, required = false)]
    operator: String,
    /// Why.
    #[param(max_length = 500, required = false)]
    reason: String,
}

fn import_mode() -> utoipa::openapi::schema::Object {
    words(holdfast_core::import::ImportMode::ALL.iter().map(|mode| mode.as_str()))
}

/// Which stock is exported.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportParameters {
    /// The campaign.
    #[param(min_length = 1, max_length = 128)]
    campaign_id: String,
}
