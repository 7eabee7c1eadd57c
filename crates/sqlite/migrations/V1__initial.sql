-- Times are microseconds since 1970 in UTC. Ids that Holdfast makes are 16 bytes. Words are spelled as in JSON.
-- There are no foreign keys on the hot tables: one writer, one door, and `verify` proves the references.

-- One row: which authority this is.
CREATE TABLE authority (
    only_row         INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    incarnation      BLOB    NOT NULL CHECK (length(incarnation) = 16),
    starts           INTEGER NOT NULL CHECK (starts >= 0),
    admin_key_sha256 BLOB    CHECK (admin_key_sha256 IS NULL OR length(admin_key_sha256) = 32)
) STRICT;

CREATE TABLE campaign (
    id                        TEXT    NOT NULL PRIMARY KEY,
    name                      TEXT    NOT NULL,
    starts_at                 INTEGER,
    ends_at                   INTEGER,
    opened                    INTEGER NOT NULL CHECK (opened IN (0, 1)),
    paused                    INTEGER NOT NULL CHECK (paused IN (0, 1)),
    frozen                    INTEGER NOT NULL CHECK (frozen IN (0, 1)),
    closed                    INTEGER NOT NULL CHECK (closed IN (0, 1)),
    hold_seconds              INTEGER NOT NULL CHECK (hold_seconds > 0),
    hold_seconds_max          INTEGER NOT NULL CHECK (hold_seconds_max >= hold_seconds),
    payment_extension_seconds INTEGER NOT NULL CHECK (payment_extension_seconds >= 0),
    release_grace_ms          INTEGER NOT NULL CHECK (release_grace_ms >= 0),
    notice_grace_seconds      INTEGER NOT NULL CHECK (notice_grace_seconds >= 0),
    capture                   TEXT    NOT NULL CHECK (capture IN ('hold', 'immediate')),
    deadline_basis            TEXT    NOT NULL CHECK (deadline_basis IN ('received_at', 'provider_paid_at')),
    late_payment              TEXT    NOT NULL CHECK (late_payment IN ('retake_else_refund', 'refund', 'review')),
    payment_failed            TEXT    NOT NULL CHECK (payment_failed IN ('keep', 'release')),
    review_seconds            INTEGER NOT NULL CHECK (review_seconds > 0),
    review_end                TEXT    NOT NULL CHECK (review_end IN ('release', 'person')),
    restock_on_refund         INTEGER NOT NULL CHECK (restock_on_refund IN (0, 1)),
    account_limit             INTEGER CHECK (account_limit > 0),
    account_open_holds        INTEGER CHECK (account_open_holds > 0),
    account_limit_ceiling     INTEGER,
    -- Behaviour of these comes later; until then only their defaults are accepted.
    key_limits                TEXT    NOT NULL DEFAULT '{}',
    order_rate_per_account    INTEGER,
    order_rate                INTEGER,
    queue_limit               INTEGER NOT NULL DEFAULT 100000,
    queue_wait_ms             INTEGER NOT NULL DEFAULT 30000,
    approval_threshold        INTEGER,
    created_at                INTEGER NOT NULL,
    updated_at                INTEGER NOT NULL
) STRICT;

CREATE TABLE pool (
    id             BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    campaign_id    TEXT    NOT NULL REFERENCES campaign (id),
    sku            TEXT    NOT NULL,
    location       TEXT    NOT NULL,
    buckets        INTEGER NOT NULL CHECK (buckets BETWEEN 1 AND 256),
    opening_supply INTEGER NOT NULL CHECK (opening_supply >= 0),
    frozen         INTEGER NOT NULL CHECK (frozen IN (0, 1)),
    path           TEXT    NOT NULL DEFAULT 'batched',
    routing        TEXT    NOT NULL DEFAULT 'order_hash',
    UNIQUE (campaign_id, sku, location)
) STRICT, WITHOUT ROWID;

-- A unit of stock is in exactly one of the three balances; none can be negative.
CREATE TABLE bucket (
    pool       BLOB    NOT NULL,
    number     INTEGER NOT NULL CHECK (number >= 0),
    weight     INTEGER NOT NULL CHECK (weight >= 0),
    available  INTEGER NOT NULL CHECK (available >= 0),
    held       INTEGER NOT NULL CHECK (held >= 0),
    sold       INTEGER NOT NULL CHECK (sold >= 0),
    ledger_seq INTEGER NOT NULL CHECK (ledger_seq >= 0),
    last_at    INTEGER NOT NULL,
    PRIMARY KEY (pool, number)
) STRICT, WITHOUT ROWID;

-- An order with its lines and allocations inside: spread over more tables it would be half as fast.
CREATE TABLE orders (
    id                BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    campaign_id       TEXT    NOT NULL,
    order_no          TEXT    NOT NULL,
    account           TEXT    NOT NULL,
    state             TEXT    NOT NULL
        CHECK (state IN ('queued', 'held', 'in_review', 'sold', 'refunded', 'released', 'failed')),
    reason            TEXT,
    version           INTEGER NOT NULL CHECK (version > 0),
    home_pool         BLOB,
    home_bucket       INTEGER,
    lines             TEXT    NOT NULL,
    hold_seconds      INTEGER NOT NULL,
    hold_seconds_sent INTEGER,
    hold_ends_at      INTEGER,
    due_at            INTEGER,
    extended          INTEGER NOT NULL CHECK (extended IN (0, 1)),
    amount_minor      INTEGER,
    currency          TEXT,
    refund_due_since  INTEGER,
    -- Attempts, payments, refunds and what was missing; null on an ordinary order.
    detail            TEXT,
    metadata          TEXT,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    UNIQUE (campaign_id, order_no)
) STRICT, WITHOUT ROWID;

CREATE INDEX orders_due ON orders (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX orders_refund_due ON orders (refund_due_since, id) WHERE refund_due_since IS NOT NULL;

-- Append-only: the sequence of a bucket has no gap, and a second write of a number is impossible.
CREATE TABLE ledger (
    pool            BLOB    NOT NULL,
    bucket          INTEGER NOT NULL,
    seq             INTEGER NOT NULL CHECK (seq > 0),
    at              INTEGER NOT NULL,
    order_id        BLOB,
    business_no     TEXT    NOT NULL,
    action          TEXT    NOT NULL,
    delta_available INTEGER NOT NULL,
    delta_held      INTEGER NOT NULL,
    delta_sold      INTEGER NOT NULL,
    settled         INTEGER NOT NULL DEFAULT 0,
    from_state      TEXT,
    to_state        TEXT,
    -- The order's version after; only in the one entry that carries the order event.
    order_version   INTEGER,
    source          TEXT    NOT NULL,
    actor           TEXT    NOT NULL,
    reason          TEXT    NOT NULL,
    PRIMARY KEY (pool, bucket, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX ledger_order ON ledger (order_id) WHERE order_id IS NOT NULL;

CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_is_never_deleted BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- Kept only for campaigns that limit accounts.
CREATE TABLE account_usage (
    campaign_id TEXT    NOT NULL,
    account     TEXT    NOT NULL,
    units       INTEGER NOT NULL CHECK (units >= 0),
    open_holds  INTEGER NOT NULL CHECK (open_holds >= 0),
    PRIMARY KEY (campaign_id, account)
) STRICT, WITHOUT ROWID;

-- Which order keeps a provider's event; the evidence itself is with the order.
CREATE TABLE payment (
    provider   TEXT NOT NULL,
    event_id   TEXT NOT NULL,
    payment_id TEXT NOT NULL,
    order_id   BLOB NOT NULL,
    outcome    TEXT NOT NULL CHECK (outcome IN ('succeeded', 'failed')),
    PRIMARY KEY (provider, event_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX payment_success ON payment (provider, payment_id) WHERE outcome = 'succeeded';

CREATE TABLE adjustment (
    id       TEXT    NOT NULL PRIMARY KEY,
    pool     BLOB    NOT NULL,
    delta    INTEGER NOT NULL CHECK (delta <> 0),
    kind     TEXT    NOT NULL CHECK (kind IN ('inbound', 'adjust')),
    bucket   INTEGER,
    operator TEXT    NOT NULL,
    reason   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Switches and other acts of operators that are no ledger entries.
CREATE TABLE operator_action (
    id       INTEGER NOT NULL PRIMARY KEY,
    at       INTEGER NOT NULL,
    operator TEXT    NOT NULL,
    action   TEXT    NOT NULL,
    subject  TEXT    NOT NULL,
    reason   TEXT    NOT NULL
) STRICT;
