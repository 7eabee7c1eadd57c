-- Incarnations, cases, and which binaries may run on this schema.

-- Schema versions that older binaries may run on. A migration that adds only what an older binary can live with
-- says so here, in a row of its own version; a version without a row is refused by every binary that is older.
CREATE TABLE schema_rule (
    version         INTEGER NOT NULL PRIMARY KEY,
    compatible_from INTEGER NOT NULL CHECK (compatible_from BETWEEN 1 AND version)
) STRICT;

-- Incarnations before the present one: an authority that was restored is another one.
CREATE TABLE past_incarnation (
    number      INTEGER NOT NULL PRIMARY KEY,
    incarnation BLOB    NOT NULL CHECK (length(incarnation) = 16),
    ended_at    INTEGER NOT NULL
) STRICT;

-- What needs a person. Never deleted.
CREATE TABLE cases (
    id         BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    kind       TEXT    NOT NULL CHECK (kind IN ('incarnation')),
    pool       BLOB    CHECK (pool IS NULL OR length(pool) = 16),
    order_id   BLOB    CHECK (order_id IS NULL OR length(order_id) = 16),
    evidence   TEXT    NOT NULL,
    opened_at  INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('open', 'resolved')),
    action     TEXT,
    operator   TEXT,
    reason     TEXT,
    decided_at INTEGER,
    -- A resolved case says all of it, an open one nothing.
    CHECK ((state = 'open') = (action IS NULL)),
    CHECK ((action IS NULL) = (operator IS NULL)),
    CHECK ((action IS NULL) = (reason IS NULL)),
    CHECK ((action IS NULL) = (decided_at IS NULL))
) STRICT, WITHOUT ROWID;

-- Read by every batch: whether an open case stops all sales.
CREATE INDEX cases_open ON cases (kind) WHERE state = 'open';
