-- The cache path: which epoch a bucket's cache is in, beside the bucket and written only under its lock, so that
-- buckets that have no cache pay nothing for it.
CREATE TABLE cache_bucket (
    pool            BLOB    NOT NULL CHECK (length(pool) = 16),
    number          INTEGER NOT NULL CHECK (number >= 0),
    epoch           INTEGER NOT NULL CHECK (epoch > 0),
    state           TEXT    NOT NULL CHECK (state IN ('open', 'draining', 'closed')),
    identity        TEXT    NOT NULL,
    base_seq        INTEGER NOT NULL CHECK (base_seq >= 0),
    base_available  INTEGER NOT NULL CHECK (base_available >= 0),
    landed          INTEGER NOT NULL CHECK (landed >= 0),
    changed_at      INTEGER NOT NULL,
    catalog_version INTEGER NOT NULL,
    PRIMARY KEY (pool, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX cache_bucket_catalog ON cache_bucket (catalog_version);

-- What a cache took is settled once: a landing that comes again finds its entry, and a second one is impossible.
CREATE UNIQUE INDEX ledger_settled ON ledger (pool, bucket, source) WHERE settled > 0;
