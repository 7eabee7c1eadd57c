-- Stock files that were imported: the same file again changes nothing.
CREATE TABLE stock_import (
    id          TEXT    NOT NULL PRIMARY KEY,
    campaign_id TEXT    NOT NULL REFERENCES campaign (id),
    mode        TEXT    NOT NULL,
    -- What the rows said, whatever their order.
    digest      BLOB    NOT NULL CHECK (length(digest) = 32),
    row_count   INTEGER NOT NULL CHECK (row_count > 0),
    units       INTEGER NOT NULL CHECK (units >= 0),
    opened      INTEGER NOT NULL CHECK (opened >= 0),
    unchanged   INTEGER NOT NULL CHECK (unchanged >= 0),
    adjusted    INTEGER NOT NULL CHECK (adjusted >= 0),
    at          INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    reason      TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
