-- Where order events are delivered. The ledger is the outbox: a sink is where it has come to in each bucket.
CREATE TABLE sink (
    name            TEXT    NOT NULL PRIMARY KEY,
    kind            TEXT    NOT NULL CHECK (kind IN ('webhook', 'nats', 'redis', 'pull')),
    settings        TEXT    NOT NULL,
    -- What deliveries are signed with: it must be known to sign, so it is kept as it is.
    secrets         TEXT    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
    why             TEXT,
    round           INTEGER NOT NULL CHECK (round > 0),
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    failing_since   INTEGER,
    failures        INTEGER NOT NULL CHECK (failures >= 0),
    next_attempt_at INTEGER,
    last_error      TEXT,
    delivered_at    INTEGER
) STRICT;

-- A replay begins a round. A bucket whose position is of an earlier round goes back to the earliest time that the
-- rounds since then name, so nothing has to be written for each bucket.
CREATE TABLE sink_round (
    sink    TEXT    NOT NULL,
    round   INTEGER NOT NULL CHECK (round > 0),
    from_at INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (sink, round)
) STRICT, WITHOUT ROWID;

CREATE TABLE sink_position (
    sink    TEXT    NOT NULL,
    pool    BLOB    NOT NULL CHECK (length(pool) = 16),
    bucket  INTEGER NOT NULL CHECK (bucket >= 0),
    round   INTEGER NOT NULL CHECK (round > 0),
    -- The last entry that is done with: delivered, parked, or none that this sink is told of.
    seq     INTEGER NOT NULL CHECK (seq >= 0),
    -- How often the next one was refused while others were taken.
    strikes INTEGER NOT NULL CHECK (strikes >= 0),
    PRIMARY KEY (sink, pool, bucket)
) STRICT, WITHOUT ROWID;

-- Events that a sink does not take while it takes others.
CREATE TABLE dead_letter (
    sink     TEXT    NOT NULL,
    pool     BLOB    NOT NULL CHECK (length(pool) = 16),
    bucket   INTEGER NOT NULL CHECK (bucket >= 0),
    seq      INTEGER NOT NULL CHECK (seq > 0),
    attempts INTEGER NOT NULL CHECK (attempts > 0),
    why      TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('parked', 'waiting', 'delivered')),
    PRIMARY KEY (sink, pool, bucket, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX dead_letter_undelivered ON dead_letter (sink, state) WHERE state <> 'delivered';

-- A binary that knows no sinks delivers nothing and loses nothing: the positions wait.
INSERT INTO schema_rule (version, compatible_from) VALUES (13, 12);
