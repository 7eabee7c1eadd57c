-- Stock files that were imported: the same file again changes nothing.
CREATE TABLE stock_import (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    campaign_id TEXT COLLATE "C" NOT NULL REFERENCES campaign (id),
    mode        TEXT    NOT NULL,
    -- What the rows said, whatever their order.
    digest      BYTEA   NOT NULL CHECK (length(digest) = 32),
    row_count   BIGINT  NOT NULL CHECK (row_count > 0),
    units       BIGINT  NOT NULL CHECK (units >= 0),
    opened      BIGINT  NOT NULL CHECK (opened >= 0),
    unchanged   BIGINT  NOT NULL CHECK (unchanged >= 0),
    adjusted    BIGINT  NOT NULL CHECK (adjusted >= 0),
    at          BIGINT  NOT NULL,
    actor       TEXT    NOT NULL,
    reason      TEXT    NOT NULL
);
