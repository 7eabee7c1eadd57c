-- Keys with roles, and the trail of what operators did through them. The column authority.admin_key_sha256
-- is not used any more: the key that it knew opens nothing, and the next start makes a new first key.

-- Of a secret only the hash. Never deleted: what was done through a key must stay explicable.
CREATE TABLE api_key (
    id            TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    name          TEXT    NOT NULL,
    role          TEXT    NOT NULL CHECK (role IN ('buyer', 'payments', 'read', 'operator', 'admin')),
    -- A JSON array of campaigns; null: all of them.
    campaigns     TEXT,
    secret_sha256 BLOB    NOT NULL CHECK (length(secret_sha256) = 32),
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER,
    revoked_at    INTEGER,
    created_by    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Whose key it was (null before keys had names), and in which request.
ALTER TABLE operator_action ADD COLUMN actor_key TEXT;
ALTER TABLE operator_action ADD COLUMN request_id TEXT;
ALTER TABLE operator_action ADD COLUMN campaign_id TEXT;
ALTER TABLE operator_action ADD COLUMN detail TEXT NOT NULL DEFAULT '';

-- Acts written before they said their campaign.
UPDATE operator_action SET campaign_id = substr(subject, 10) WHERE subject LIKE 'campaign %';
UPDATE operator_action SET campaign_id = (
    SELECT campaign_id FROM pool WHERE lower(hex(pool.id)) = replace(substr(operator_action.subject, 6), '-', '')
) WHERE subject LIKE 'pool %';

CREATE INDEX operator_action_subject ON operator_action (subject, id);

CREATE TRIGGER operator_action_is_never_changed BEFORE UPDATE ON operator_action
BEGIN SELECT RAISE(ABORT, 'the trail of acts is append-only'); END;
CREATE TRIGGER operator_action_is_never_deleted BEFORE DELETE ON operator_action
BEGIN SELECT RAISE(ABORT, 'the trail of acts is append-only'); END;
