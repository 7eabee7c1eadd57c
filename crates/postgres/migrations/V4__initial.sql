-- The schema of version 4. The numbers are those of the embedded store: the same number is the same schema, table by
-- table and column by column.
--
-- Times are microseconds since 1970 in UTC. Ids that Holdfast makes are UUIDs. Words are spelled as in JSON. Text is
-- compared byte by byte, so that every node and every store sorts alike.
-- There are no foreign keys on the hot tables: one door, and `verify` proves the references.

-- One row: which authority this is. It counts the starts (a write of its own, before a connection is trusted) and
-- gives the acts of operators their numbers.
CREATE TABLE authority (
    only_row    INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    incarnation UUID    NOT NULL,
    starts      BIGINT  NOT NULL CHECK (starts >= 0),
    acts        BIGINT  NOT NULL CHECK (acts >= 0)
) WITH (fillfactor = 10);

CREATE TABLE campaign (
    id                        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name                      TEXT    NOT NULL,
    starts_at                 BIGINT,
    ends_at                   BIGINT,
    opened                    BOOLEAN NOT NULL,
    paused                    BOOLEAN NOT NULL,
    frozen                    BOOLEAN NOT NULL,
    closed                    BOOLEAN NOT NULL,
    hold_seconds              BIGINT  NOT NULL CHECK (hold_seconds > 0),
    hold_seconds_max          BIGINT  NOT NULL CHECK (hold_seconds_max >= hold_seconds),
    payment_extension_seconds BIGINT  NOT NULL CHECK (payment_extension_seconds >= 0),
    release_grace_ms          BIGINT  NOT NULL CHECK (release_grace_ms >= 0),
    notice_grace_seconds      BIGINT  NOT NULL CHECK (notice_grace_seconds >= 0),
    capture                   TEXT    NOT NULL CHECK (capture IN ('hold', 'immediate')),
    deadline_basis            TEXT    NOT NULL CHECK (deadline_basis IN ('received_at', 'provider_paid_at')),
    late_payment              TEXT    NOT NULL CHECK (late_payment IN ('retake_else_refund', 'refund', 'review')),
    payment_failed            TEXT    NOT NULL CHECK (payment_failed IN ('keep', 'release')),
    review_seconds            BIGINT  NOT NULL CHECK (review_seconds > 0),
    review_end                TEXT    NOT NULL CHECK (review_end IN ('release', 'person')),
    restock_on_refund         BOOLEAN NOT NULL,
    account_limit             BIGINT  CHECK (account_limit > 0),
    account_open_holds        BIGINT  CHECK (account_open_holds > 0),
    account_limit_ceiling     BIGINT,
    -- Behaviour of these comes later; until then only their defaults are accepted.
    key_limits                TEXT    NOT NULL DEFAULT '{}',
    order_rate_per_account    BIGINT,
    order_rate                BIGINT,
    queue_limit               BIGINT  NOT NULL DEFAULT 100000,
    queue_wait_ms             BIGINT  NOT NULL DEFAULT 30000,
    approval_threshold        BIGINT,
    created_at                BIGINT  NOT NULL,
    updated_at                BIGINT  NOT NULL
);

CREATE TABLE pool (
    id             UUID    NOT NULL PRIMARY KEY,
    campaign_id    TEXT COLLATE "C" NOT NULL REFERENCES campaign (id),
    sku            TEXT COLLATE "C" NOT NULL,
    location       TEXT COLLATE "C" NOT NULL,
    buckets        INTEGER NOT NULL CHECK (buckets BETWEEN 1 AND 256),
    opening_supply BIGINT  NOT NULL CHECK (opening_supply >= 0),
    frozen         BOOLEAN NOT NULL,
    path           TEXT    NOT NULL DEFAULT 'batched',
    routing        TEXT    NOT NULL DEFAULT 'order_hash',
    CONSTRAINT pool_address UNIQUE (campaign_id, sku, location)
);

-- A unit of stock is in exactly one of the three balances; none can be negative. The hottest rows of all: no index
-- on anything that changes and much room in each page, so that a new version stays where the old one was.
CREATE TABLE bucket (
    pool       UUID    NOT NULL,
    number     INTEGER NOT NULL CHECK (number >= 0),
    weight     BIGINT  NOT NULL CHECK (weight >= 0),
    available  BIGINT  NOT NULL CHECK (available >= 0),
    held       BIGINT  NOT NULL CHECK (held >= 0),
    sold       BIGINT  NOT NULL CHECK (sold >= 0),
    ledger_seq BIGINT  NOT NULL CHECK (ledger_seq >= 0),
    last_at    BIGINT  NOT NULL,
    PRIMARY KEY (pool, number)
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- An order with its lines and allocations inside: spread over more tables it would be half as fast.
CREATE TABLE orders (
    id                UUID    NOT NULL PRIMARY KEY,
    campaign_id       TEXT COLLATE "C" NOT NULL,
    order_no          TEXT COLLATE "C" NOT NULL,
    account           TEXT COLLATE "C" NOT NULL,
    state             TEXT    NOT NULL
        CHECK (state IN ('queued', 'held', 'in_review', 'sold', 'refunded', 'released', 'failed')),
    reason            TEXT,
    version           BIGINT  NOT NULL CHECK (version > 0),
    home_pool         UUID,
    home_bucket       INTEGER,
    lines             TEXT    NOT NULL,
    hold_seconds      BIGINT  NOT NULL,
    hold_seconds_sent BIGINT,
    hold_ends_at      BIGINT,
    due_at            BIGINT,
    extended          BOOLEAN NOT NULL,
    amount_minor      BIGINT,
    currency          TEXT,
    refund_due_since  BIGINT,
    -- Attempts, payments, refunds and what was missing; null on an ordinary order.
    detail            TEXT,
    metadata          TEXT,
    created_at        BIGINT  NOT NULL,
    updated_at        BIGINT  NOT NULL,
    CONSTRAINT orders_key UNIQUE (campaign_id, order_no)
);

CREATE INDEX orders_due ON orders (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX orders_refund_due ON orders (refund_due_since, id) WHERE refund_due_since IS NOT NULL;

-- Append-only: the sequence of a bucket has no gap, and a second write of a number is impossible.
CREATE TABLE ledger (
    pool            UUID    NOT NULL,
    bucket          INTEGER NOT NULL,
    seq             BIGINT  NOT NULL CHECK (seq > 0),
    at              BIGINT  NOT NULL,
    order_id        UUID,
    business_no     TEXT    NOT NULL,
    action          TEXT    NOT NULL,
    delta_available BIGINT  NOT NULL,
    delta_held      BIGINT  NOT NULL,
    delta_sold      BIGINT  NOT NULL,
    settled         BIGINT  NOT NULL DEFAULT 0,
    from_state      TEXT,
    to_state        TEXT,
    -- The order's version after; only in the one entry that carries the order event.
    order_version   BIGINT,
    source          TEXT    NOT NULL,
    actor           TEXT    NOT NULL,
    reason          TEXT    NOT NULL,
    PRIMARY KEY (pool, bucket, seq)
);

CREATE INDEX ledger_order ON ledger (order_id) WHERE order_id IS NOT NULL;
-- Entries that change a supply or refund, without the many that hold and sell: a settlement reads these alone.
CREATE INDEX ledger_settlement ON ledger (pool, action, order_id)
    WHERE action IN ('opening', 'inbound', 'adjust', 'transfer_out', 'transfer_in', 'repair', 'refund');

-- Kept only for campaigns that limit accounts.
CREATE TABLE account_usage (
    campaign_id TEXT COLLATE "C" NOT NULL,
    account     TEXT COLLATE "C" NOT NULL,
    units       BIGINT NOT NULL CHECK (units >= 0),
    open_holds  BIGINT NOT NULL CHECK (open_holds >= 0),
    PRIMARY KEY (campaign_id, account)
) WITH (fillfactor = 70);

-- Which order keeps a provider's event; the evidence itself is with the order.
CREATE TABLE payment (
    provider   TEXT COLLATE "C" NOT NULL,
    event_id   TEXT COLLATE "C" NOT NULL,
    payment_id TEXT COLLATE "C" NOT NULL,
    order_id   UUID NOT NULL,
    outcome    TEXT NOT NULL CHECK (outcome IN ('succeeded', 'failed')),
    PRIMARY KEY (provider, event_id)
);

CREATE INDEX payment_success ON payment (provider, payment_id, order_id) WHERE outcome = 'succeeded';

CREATE TABLE adjustment (
    id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    pool     UUID    NOT NULL,
    delta    BIGINT  NOT NULL CHECK (delta <> 0),
    kind     TEXT    NOT NULL CHECK (kind IN ('inbound', 'adjust')),
    bucket   INTEGER,
    operator TEXT    NOT NULL,
    reason   TEXT    NOT NULL
);

-- Switches and other acts of operators that are no ledger entries. Whose key it was, and in which request.
CREATE TABLE operator_action (
    id          BIGINT NOT NULL PRIMARY KEY,
    at          BIGINT NOT NULL,
    operator    TEXT   NOT NULL,
    action      TEXT   NOT NULL,
    subject     TEXT COLLATE "C" NOT NULL,
    reason      TEXT   NOT NULL,
    actor_key   TEXT,
    request_id  TEXT,
    campaign_id TEXT COLLATE "C",
    detail      TEXT   NOT NULL
);

CREATE INDEX operator_action_subject ON operator_action (subject, id);

-- Of a secret only the hash. Never deleted: what was done through a key must stay explicable.
CREATE TABLE api_key (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    name          TEXT   NOT NULL,
    role          TEXT   NOT NULL CHECK (role IN ('buyer', 'payments', 'read', 'operator', 'admin')),
    -- A JSON array of campaigns; null: all of them.
    campaigns     TEXT,
    secret_sha256 BYTEA  NOT NULL CHECK (length(secret_sha256) = 32),
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT,
    revoked_at    BIGINT,
    created_by    TEXT   NOT NULL
);

-- Schema versions that older binaries may run on. A migration that adds only what an older binary can live with
-- says so here, in a row of its own version; a version without a row is refused by every binary that is older.
CREATE TABLE schema_rule (
    version         INTEGER NOT NULL PRIMARY KEY,
    compatible_from INTEGER NOT NULL CHECK (compatible_from BETWEEN 1 AND version)
);

-- Incarnations before the present one: an authority that was restored is another one.
CREATE TABLE past_incarnation (
    number      INTEGER NOT NULL PRIMARY KEY,
    incarnation UUID    NOT NULL,
    ended_at    BIGINT  NOT NULL
);

-- What needs a person. Never deleted.
CREATE TABLE cases (
    id         UUID   NOT NULL PRIMARY KEY,
    kind       TEXT   NOT NULL CHECK (kind IN ('incarnation')),
    pool       UUID,
    order_id   UUID,
    evidence   TEXT   NOT NULL,
    opened_at  BIGINT NOT NULL,
    state      TEXT   NOT NULL CHECK (state IN ('open', 'resolved')),
    action     TEXT,
    operator   TEXT,
    reason     TEXT,
    decided_at BIGINT,
    -- A resolved case says all of it, an open one nothing.
    CHECK ((state = 'open') = (action IS NULL)),
    CHECK ((action IS NULL) = (operator IS NULL)),
    CHECK ((action IS NULL) = (reason IS NULL)),
    CHECK ((action IS NULL) = (decided_at IS NULL))
);

-- Read by every batch: whether an open case stops all sales.
CREATE INDEX cases_open ON cases (kind) WHERE state = 'open';

-- What is evidence is added and never touched again, whoever asks. Kept apart from the product by a role without
-- rights on these functions, they hold against that role too.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = '23514';
END
$$;

CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE OR DELETE ON ledger
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_is_never_emptied BEFORE TRUNCATE ON ledger
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER operator_action_is_never_changed BEFORE UPDATE OR DELETE ON operator_action
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER operator_action_is_never_emptied BEFORE TRUNCATE ON operator_action
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

INSERT INTO authority (only_row, incarnation, starts, acts)
VALUES (1, '00000000-0000-0000-0000-000000000000', 0, 0);
