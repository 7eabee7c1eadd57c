INSERT INTO campaign (
    id, name, starts_at, ends_at, opened, paused, frozen, closed, hold_seconds, hold_seconds_max,
    payment_extension_seconds, release_grace_ms, notice_grace_seconds, capture, deadline_basis, late_payment,
    payment_failed, review_seconds, review_end, restock_on_refund, account_limit, account_open_holds, queue_limit,
    queue_wait_ms, key_limits, order_rate_per_account, order_rate, approval_threshold, account_limit_ceiling,
    account_open_holds_ceiling, key_ceilings, created_at, updated_at
) VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
    $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33
)
