INSERT INTO campaign (
    id, name, starts_at, ends_at, opened, paused, frozen, closed, hold_seconds, hold_seconds_max,
    payment_extension_seconds, release_grace_ms, notice_grace_seconds, capture, deadline_basis, late_payment,
    payment_failed, review_seconds, review_end, restock_on_refund, account_limit, account_open_holds,
    account_limit_ceiling, account_open_holds_ceiling, queue_limit, queue_wait_ms, key_limits, key_ceilings,
    order_rate_per_account, order_rate, approval_threshold, created_at, updated_at, catalog_version
) VALUES (
    :id, :name, :starts_at, :ends_at, :opened, :paused, :frozen, :closed, :hold_seconds, :hold_seconds_max,
    :payment_extension_seconds, :release_grace_ms, :notice_grace_seconds, :capture, :deadline_basis, :late_payment,
    :payment_failed, :review_seconds, :review_end, :restock_on_refund, :account_limit, :account_open_holds,
    :account_limit_ceiling, :account_open_holds_ceiling, :queue_limit, :queue_wait_ms, :key_limits, :key_ceilings,
    :order_rate_per_account, :order_rate, :approval_threshold, :created_at, :updated_at, :catalog_version
)
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name, starts_at = excluded.starts_at, ends_at = excluded.ends_at, opened = excluded.opened,
    paused = excluded.paused, frozen = excluded.frozen, closed = excluded.closed,
    hold_seconds = excluded.hold_seconds, hold_seconds_max = excluded.hold_seconds_max,
    payment_extension_seconds = excluded.payment_extension_seconds, release_grace_ms = excluded.release_grace_ms,
    notice_grace_seconds = excluded.notice_grace_seconds, capture = excluded.capture,
    deadline_basis = excluded.deadline_basis, late_payment = excluded.late_payment,
    payment_failed = excluded.payment_failed, review_seconds = excluded.review_seconds,
    review_end = excluded.review_end, restock_on_refund = excluded.restock_on_refund,
    account_limit = excluded.account_limit, account_open_holds = excluded.account_open_holds,
    account_limit_ceiling = excluded.account_limit_ceiling,
    account_open_holds_ceiling = excluded.account_open_holds_ceiling, queue_limit = excluded.queue_limit,
    queue_wait_ms = excluded.queue_wait_ms, key_limits = excluded.key_limits, key_ceilings = excluded.key_ceilings,
    order_rate_per_account = excluded.order_rate_per_account, order_rate = excluded.order_rate,
    approval_threshold = excluded.approval_threshold,
    updated_at = excluded.updated_at, catalog_version = excluded.catalog_version
