-- Reconciliation: runs, what they found, and up to where each bucket was proved. Nothing of it is part of a sale.

CREATE TABLE reconciliation (
    id           BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    scope        TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    asked_by     TEXT    NOT NULL,
    started_at   INTEGER NOT NULL,
    finished_at  INTEGER,
    buckets_read INTEGER NOT NULL CHECK (buckets_read >= 0),
    entries_read INTEGER NOT NULL CHECK (entries_read >= 0),
    orders_read  INTEGER NOT NULL CHECK (orders_read >= 0),
    -- How many of each class, as JSON.
    found        TEXT    NOT NULL,
    failure      TEXT,
    attempts     INTEGER NOT NULL CHECK (attempts >= 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX reconciliation_unfinished ON reconciliation (id) WHERE state = 'running';

-- A difference is named by what it is about, so that it is one however often it is found; when it comes again after it
-- was mended, it is the next round of the same.
CREATE TABLE discrepancy (
    id            BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    identity      BLOB    NOT NULL CHECK (length(identity) = 16),
    round         INTEGER NOT NULL CHECK (round >= 0),
    class         TEXT    NOT NULL,
    pool          BLOB,
    bucket        INTEGER,
    order_id      BLOB,
    position      INTEGER NOT NULL CHECK (position >= 0),
    expected      TEXT    NOT NULL,
    actual        TEXT    NOT NULL,
    evidence      TEXT    NOT NULL,
    proof         TEXT    NOT NULL,
    first_seen_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    last_run      BLOB    NOT NULL,
    cycles        INTEGER NOT NULL CHECK (cycles > 0),
    disposition   TEXT    NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN ('open', 'repaired', 'resolved')),
    UNIQUE (identity, round)
) STRICT, WITHOUT ROWID;
CREATE INDEX discrepancy_open ON discrepancy (id) WHERE state = 'open';

CREATE TABLE reconcile_checkpoint (
    pool          BLOB    NOT NULL,
    number        INTEGER NOT NULL,
    to_seq        INTEGER NOT NULL CHECK (to_seq >= 0),
    entries       INTEGER NOT NULL,
    available_sum INTEGER NOT NULL,
    held_sum      INTEGER NOT NULL,
    sold_sum      INTEGER NOT NULL,
    unowned_held  INTEGER NOT NULL,
    unowned_sold  INTEGER NOT NULL,
    moves         INTEGER NOT NULL,
    supplies      INTEGER NOT NULL,
    covering      INTEGER NOT NULL,
    PRIMARY KEY (pool, number)
) STRICT, WITHOUT ROWID;

-- Entries of the same bucket that a repair stands for.
ALTER TABLE ledger ADD COLUMN covers_first INTEGER;
ALTER TABLE ledger ADD COLUMN covers_last INTEGER;
