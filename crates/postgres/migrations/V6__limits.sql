-- Limits of named keys that orders carry, and cases of orders.

-- What keys are hashed with: made here, once, and never changed. Without it a hash of a short key could be looked
-- up in a table of hashes made elsewhere; whoever has this row can still try guesses.
CREATE TABLE limit_salt (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    salt     BYTEA   NOT NULL CHECK (length(salt) = 32)
);
INSERT INTO limit_salt (only_row, salt) VALUES (1, decode(replace(
    CAST(gen_random_uuid() AS TEXT) || CAST(gen_random_uuid() AS TEXT), '-', ''), 'hex'));

-- Kept only for names that a campaign limits.
CREATE TABLE key_usage (
    campaign_id TEXT COLLATE "C" NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    hashed      UUID   NOT NULL,
    units       BIGINT NOT NULL CHECK (units >= 0),
    open_holds  BIGINT NOT NULL CHECK (open_holds >= 0),
    PRIMARY KEY (campaign_id, name, hashed)
) WITH (fillfactor = 70);

-- A JSON object of names and hashes; null on an order that carries none. Part of the content, so it never changes.
ALTER TABLE orders ADD COLUMN limit_keys TEXT;

-- The most that each limit ever allowed, like account_limit_ceiling.
ALTER TABLE campaign ADD COLUMN account_open_holds_ceiling BIGINT;
ALTER TABLE campaign ADD COLUMN key_ceilings TEXT NOT NULL DEFAULT '{}';

-- Cases are of more kinds now.
ALTER TABLE cases DROP CONSTRAINT cases_kind_check;
