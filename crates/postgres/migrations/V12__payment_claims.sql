-- Which order a payment is for: the first on which it succeeded. The key lets it pay no other, whoever is told of it
-- at the same time.
CREATE TABLE payment_claim (
    provider   TEXT COLLATE "C" NOT NULL,
    payment_id TEXT COLLATE "C" NOT NULL,
    order_id   UUID NOT NULL,
    PRIMARY KEY (provider, payment_id)
);

-- Of those that are there, the oldest order: ids of orders rise with time.
INSERT INTO payment_claim (provider, payment_id, order_id)
SELECT provider, payment_id, order_id FROM (
    SELECT provider, payment_id, order_id,
           row_number() OVER (PARTITION BY provider, payment_id ORDER BY order_id) AS place
    FROM payment WHERE outcome = 'succeeded'
) AS succeeded WHERE place = 1;

-- It found them before.
DROP INDEX payment_success;
