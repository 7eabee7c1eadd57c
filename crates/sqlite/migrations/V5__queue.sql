-- Orders that wait in a queue, as they were taken in: the next to land, places and lengths.
CREATE INDEX orders_queued ON orders (home_pool, home_bucket, created_at, id) WHERE state = 'queued';

-- Who does a piece of work that one at a time should do. It spares doubled work and protects nothing.
CREATE TABLE lease (
    name    TEXT    NOT NULL PRIMARY KEY,
    holder  BLOB    NOT NULL CHECK (length(holder) = 16),
    ends_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- An older binary queues nothing; what waits, it lets run out of time, and says so.
INSERT INTO schema_rule (version, compatible_from) VALUES (5, 4);
