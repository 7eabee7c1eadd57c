UPDATE campaign SET
    name = $2, starts_at = $3, ends_at = $4, opened = $5, paused = $6, frozen = $7, closed = $8,
    hold_seconds = $9, hold_seconds_max = $10, payment_extension_seconds = $11, release_grace_ms = $12,
    notice_grace_seconds = $13, capture = $14, deadline_basis = $15, late_payment = $16, payment_failed = $17,
    review_seconds = $18, review_end = $19, restock_on_refund = $20, account_limit = $21,
    account_open_holds = $22, queue_limit = $23, queue_wait_ms = $24, key_limits = $25,
    order_rate_per_account = $26, order_rate = $27, approval_threshold = $28, account_limit_ceiling = $29,
    account_open_holds_ceiling = $30, key_ceilings = $31, updated_at = $33
WHERE id = $1 AND created_at = $32
