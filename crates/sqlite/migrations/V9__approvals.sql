-- Work of operators that waits for a second person, and what was decided.
CREATE TABLE approval (
    id              TEXT    NOT NULL PRIMARY KEY,
    campaign_id     TEXT    NOT NULL REFERENCES campaign (id),
    proposal        TEXT    NOT NULL,
    units           INTEGER NOT NULL CHECK (units >= 0),
    asked_at        INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    actor           TEXT    NOT NULL,
    actor_key       TEXT,
    reason          TEXT    NOT NULL,
    verdict         TEXT    CHECK (verdict IN ('approve', 'reject')),
    decided_at      INTEGER,
    decider         TEXT,
    decider_key     TEXT,
    decision_reason TEXT,
    CHECK ((verdict IS NULL) = (decided_at IS NULL) AND (verdict IS NULL) = (decider IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX approval_undecided ON approval (expires_at) WHERE verdict IS NULL;
