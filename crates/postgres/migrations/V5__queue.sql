-- Orders that wait in a queue, as they were taken in: the next to land, places and lengths.
CREATE INDEX orders_queued ON orders (home_pool, home_bucket, created_at, id) WHERE state = 'queued';

-- Who does a piece of work that one at a time should do. It spares doubled work and protects nothing.
CREATE TABLE lease (
    name    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    holder  UUID   NOT NULL,
    ends_at BIGINT NOT NULL
) WITH (fillfactor = 50);

-- An older binary queues nothing; what waits, it lets run out of time, and says so.
INSERT INTO schema_rule (version, compatible_from) VALUES (5, 4);
