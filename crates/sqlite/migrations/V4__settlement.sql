-- Entries that change a supply or refund, without the many that hold and sell: a settlement reads these alone.
CREATE INDEX ledger_settlement
    ON ledger (pool, action, order_id, delta_available, delta_held, delta_sold)
    WHERE action IN ('opening', 'inbound', 'adjust', 'transfer_out', 'transfer_in', 'repair', 'refund');
