-- Where order events are delivered. The ledger is the outbox: a sink is where it has come to in each bucket.
CREATE TABLE sink (
    name            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind            TEXT    NOT NULL CHECK (kind IN ('webhook', 'nats', 'redis', 'pull')),
    settings        TEXT    NOT NULL,
    -- What deliveries are signed with: it must be known to sign, so it is kept as it is.
    secrets         TEXT    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
    why             TEXT,
    round           BIGINT  NOT NULL CHECK (round > 0),
    created_at      BIGINT  NOT NULL,
    updated_at      BIGINT  NOT NULL,
    failing_since   BIGINT,
    failures        BIGINT  NOT NULL CHECK (failures >= 0),
    next_attempt_at BIGINT,
    last_error      TEXT,
    delivered_at    BIGINT
);

-- A replay begins a round. A bucket whose position is of an earlier round goes back to the earliest time that the
-- rounds since then name, so nothing has to be written for each bucket.
CREATE TABLE sink_round (
    sink    TEXT COLLATE "C" NOT NULL,
    round   BIGINT  NOT NULL CHECK (round > 0),
    from_at BIGINT  NOT NULL,
    at      BIGINT  NOT NULL,
    PRIMARY KEY (sink, round)
);

CREATE TABLE sink_position (
    sink    TEXT COLLATE "C" NOT NULL,
    pool    UUID    NOT NULL,
    bucket  INTEGER NOT NULL CHECK (bucket >= 0),
    round   BIGINT  NOT NULL CHECK (round > 0),
    -- The last entry that is done with: delivered, parked, or none that this sink is told of.
    seq     BIGINT  NOT NULL CHECK (seq >= 0),
    -- How often the next one was refused while others were taken.
    strikes INTEGER NOT NULL CHECK (strikes >= 0),
    PRIMARY KEY (sink, pool, bucket)
) WITH (fillfactor = 50);

-- Events that a sink does not take while it takes others.
CREATE TABLE dead_letter (
    sink     TEXT COLLATE "C" NOT NULL,
    pool     UUID    NOT NULL,
    bucket   INTEGER NOT NULL CHECK (bucket >= 0),
    seq      BIGINT  NOT NULL CHECK (seq > 0),
    attempts INTEGER NOT NULL CHECK (attempts > 0),
    why      TEXT    NOT NULL,
    at       BIGINT  NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('parked', 'waiting', 'delivered')),
    PRIMARY KEY (sink, pool, bucket, seq)
);

CREATE INDEX dead_letter_undelivered ON dead_letter (sink, state) WHERE state <> 'delivered';

-- A binary that knows no sinks delivers nothing and loses nothing: the positions wait.
INSERT INTO schema_rule (version, compatible_from) VALUES (13, 12);
