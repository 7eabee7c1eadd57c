-- Limits of named keys that orders carry, and cases of orders.

-- What keys are hashed with: made here, once, and never changed. Without it a hash of a short key could be looked
-- up in a table of hashes made elsewhere; whoever has this row can still try guesses.
CREATE TABLE limit_salt (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    salt     BLOB    NOT NULL CHECK (length(salt) = 32)
) STRICT;
INSERT INTO limit_salt (only_row, salt) VALUES (1, randomblob(32));

-- Kept only for names that a campaign limits.
CREATE TABLE key_usage (
    campaign_id TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    hashed      BLOB    NOT NULL CHECK (length(hashed) = 16),
    units       INTEGER NOT NULL CHECK (units >= 0),
    open_holds  INTEGER NOT NULL CHECK (open_holds >= 0),
    PRIMARY KEY (campaign_id, name, hashed)
) STRICT, WITHOUT ROWID;

-- A JSON object of names and hashes; null on an order that carries none. Part of the content, so it never changes.
ALTER TABLE orders ADD COLUMN limit_keys TEXT;

-- The most that each limit ever allowed, like account_limit_ceiling.
ALTER TABLE campaign ADD COLUMN account_open_holds_ceiling INTEGER;
ALTER TABLE campaign ADD COLUMN key_ceilings TEXT NOT NULL DEFAULT '{}';

-- Cases are of more kinds now: the same table without the rule that knew one.
ALTER TABLE cases RENAME TO cases_of_one_kind;
CREATE TABLE cases (
    id         BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    kind       TEXT    NOT NULL,
    pool       BLOB    CHECK (pool IS NULL OR length(pool) = 16),
    order_id   BLOB    CHECK (order_id IS NULL OR length(order_id) = 16),
    evidence   TEXT    NOT NULL,
    opened_at  INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('open', 'resolved')),
    action     TEXT,
    operator   TEXT,
    reason     TEXT,
    decided_at INTEGER,
    CHECK ((state = 'open') = (action IS NULL)),
    CHECK ((action IS NULL) = (operator IS NULL)),
    CHECK ((action IS NULL) = (reason IS NULL)),
    CHECK ((action IS NULL) = (decided_at IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO cases (id, kind, pool, order_id, evidence, opened_at, state, action, operator, reason, decided_at)
SELECT id, kind, pool, order_id, evidence, opened_at, state, action, operator, reason, decided_at
FROM cases_of_one_kind;
DROP TABLE cases_of_one_kind;
CREATE INDEX cases_open ON cases (kind) WHERE state = 'open';
