-- Reconciliation: runs, what they found, and up to where each bucket was proved. Nothing of it is part of a sale.

CREATE TABLE reconciliation (
    id           UUID    NOT NULL PRIMARY KEY,
    scope        TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    asked_by     TEXT    NOT NULL,
    started_at   BIGINT  NOT NULL,
    finished_at  BIGINT,
    buckets_read BIGINT  NOT NULL CHECK (buckets_read >= 0),
    entries_read BIGINT  NOT NULL CHECK (entries_read >= 0),
    orders_read  BIGINT  NOT NULL CHECK (orders_read >= 0),
    -- How many of each class, as JSON.
    found        TEXT    NOT NULL,
    failure      TEXT,
    attempts     BIGINT  NOT NULL CHECK (attempts >= 0)
);
CREATE INDEX reconciliation_unfinished ON reconciliation (id) WHERE state = 'running';

-- A difference is named by what it is about, so that it is one however often it is found; when it comes again after it
-- was mended, it is the next round of the same.
CREATE TABLE discrepancy (
    id            UUID    NOT NULL PRIMARY KEY,
    identity      UUID    NOT NULL,
    round         BIGINT  NOT NULL CHECK (round >= 0),
    class         TEXT    NOT NULL,
    pool          UUID,
    bucket        BIGINT,
    order_id      UUID,
    position      BIGINT  NOT NULL CHECK (position >= 0),
    expected      TEXT    NOT NULL,
    actual        TEXT    NOT NULL,
    evidence      TEXT    NOT NULL,
    proof         TEXT    NOT NULL,
    first_seen_at BIGINT  NOT NULL,
    last_seen_at  BIGINT  NOT NULL,
    last_run      UUID    NOT NULL,
    cycles        BIGINT  NOT NULL CHECK (cycles > 0),
    disposition   TEXT    NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN ('open', 'repaired', 'resolved')),
    UNIQUE (identity, round)
);
CREATE INDEX discrepancy_open ON discrepancy (id) WHERE state = 'open';

CREATE TABLE reconcile_checkpoint (
    pool          UUID    NOT NULL,
    number        INTEGER NOT NULL,
    to_seq        BIGINT  NOT NULL CHECK (to_seq >= 0),
    entries       BIGINT  NOT NULL,
    available_sum BIGINT  NOT NULL,
    held_sum      BIGINT  NOT NULL,
    sold_sum      BIGINT  NOT NULL,
    unowned_held  BIGINT  NOT NULL,
    unowned_sold  BIGINT  NOT NULL,
    moves         BIGINT  NOT NULL,
    supplies      BIGINT  NOT NULL,
    covering      BIGINT  NOT NULL,
    PRIMARY KEY (pool, number)
);

-- Entries of the same bucket that a repair stands for.
ALTER TABLE ledger ADD COLUMN covers_first BIGINT;
ALTER TABLE ledger ADD COLUMN covers_last BIGINT;
