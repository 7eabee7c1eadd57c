-- How orders come to a pool, transfers, and the version by which nodes see what changed.

-- What a pool was opened with: the same request again is compared with it. Words are checked by the code: new
-- ones come without rewriting the table.
ALTER TABLE pool ADD COLUMN opening_buckets INTEGER NOT NULL DEFAULT 1 CHECK (opening_buckets BETWEEN 1 AND 256);
ALTER TABLE pool ADD COLUMN opening_path TEXT NOT NULL DEFAULT 'batched';
ALTER TABLE pool ADD COLUMN opening_routing TEXT NOT NULL DEFAULT 'order_hash';
UPDATE pool SET opening_buckets = buckets;

ALTER TABLE pool ADD COLUMN max_concurrency BIGINT CHECK (max_concurrency >= 0);
ALTER TABLE pool ADD COLUMN cache_fallback TEXT NOT NULL DEFAULT 'authority';
ALTER TABLE pool ADD COLUMN retired BOOLEAN NOT NULL DEFAULT FALSE;

-- Counts the changes of campaigns and pools; a row has the number of its last one.
ALTER TABLE authority ADD COLUMN catalog_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE campaign ADD COLUMN catalog_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pool ADD COLUMN catalog_version BIGINT NOT NULL DEFAULT 0;
CREATE INDEX campaign_catalog ON campaign (catalog_version);
CREATE INDEX pool_catalog ON pool (catalog_version);

CREATE TABLE transfer (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    from_pool   UUID    NOT NULL,
    from_bucket INTEGER,
    to_pool     UUID    NOT NULL,
    to_bucket   INTEGER,
    quantity    BIGINT  NOT NULL CHECK (quantity > 0),
    operator    TEXT    NOT NULL,
    reason      TEXT    NOT NULL
);
