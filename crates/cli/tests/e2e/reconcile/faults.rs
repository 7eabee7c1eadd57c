//! Planted faults, one after the other, each in a pool of its own.

use serde_json::{Value, json};

use super::Shop;
use crate::support::{Http, run, wait_until};

/// A campaign with a pool of two buckets, and three orders in it: held, sold, released.
pub(super) struct Stall {
    campaign: String,
    pub(super) pool: String,
    held: String,
    sold: String,
}

impl Stall {
    pub(super) async fn open(http: &Http, name: &str) -> Self {
        let campaign = format!("stall-{name}");
        http.campaign(&campaign, json!({"account_limit": 100})).await;
        let pool = http.pool(&campaign, "CUP", 20, 1).await;
        http.pool(&campaign, "MUG", 20, 1).await;
        let place = async |number: &str| {
            let placed = http.place(&campaign, &format!("{name}-{number}"), "CUP", 2).await;
            assert_eq!(placed.status, 201, "{placed:?}");
            placed.text("id")
        };
        let (held, sold, released) = (place("held").await, place("sold").await, place("released").await);
        assert_eq!(http.pay(&sold, &format!("{name}-paid")).await.status, 200);
        let cancel = http.post(&format!("/v1/orders/{released}/cancel"), &json!({})).await;
        assert_eq!(cancel.status, 200, "{cancel:?}");
        Self { campaign, pool, held, sold }
    }
}

/// What a repaired difference of this class leaves: nothing open, nothing frozen.
async fn is_repaired_at_once(shop: &Shop, class: &str, sql: &[String]) {
    for sql in sql {
        shop.raw.run(sql).await;
    }
    let http = &shop.server.http;
    let found = http.reconcile("full").await;
    assert_eq!(found["found"], json!({class: 1}), "{:#?}", http.discrepancies("").await);
    let kept = http.discrepancies(&format!("class={class}")).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (&kept[0]["disposition"], &kept[0]["state"]),
        (&json!("repair"), &json!("repaired")),
        "{kept:#?}"
    );
    assert_eq!(http.reconcile("full").await["found"], json!({}), "a second run finds nothing new");
}

/// A difference that freezes: it is found as this class alone, its pool lets nothing out, one case waits for a person;
/// found again it is the same. What the person decides mends it, and the freeze ends by itself.
async fn freezes_until_decided(shop: &Shop, stall: &Stall, class: &str, sql: &[String], action: &str) {
    for sql in sql {
        shop.raw.run(sql).await;
    }
    let http = &shop.server.http;
    assert_eq!(
        http.reconcile("full").await["found"],
        json!({class: 1}),
        "{:#?}",
        http.discrepancies("state=open").await
    );
    let open = http.discrepancies("state=open").await;
    assert_eq!(open.len(), 1, "{open:#?}");
    let found = &open[0];
    assert_eq!((&found["class"], &found["pool_id"]), (&json!(class), &json!(stall.pool)), "{found:#}");
    assert_eq!((&found["disposition"], &found["cycles"]), (&json!("freeze"), &json!(1)));
    let refused = http.place(&stall.campaign, "new", "CUP", 1).await;
    assert_eq!((refused.status, refused.code()), (409, "frozen"), "{refused:?}");
    assert_eq!(
        http.place(&stall.campaign, &format!("mug-{class}"), "MUG", 1).await.status,
        201,
        "others sell"
    );
    http.reconcile("full").await;
    let again = http.discrepancies("state=open").await;
    assert_eq!((again.len(), &again[0]["id"], &again[0]["cycles"]), (1, &found["id"], &json!(2)));
    let cases: Vec<Value> =
        http.open_cases().await.into_iter().filter(|case| case["kind"] == class).collect();
    assert_eq!(cases.len(), 1, "one case: {cases:#?}");
    let case = &cases[0];
    assert_eq!((&case["id"], &case["suggested"]), (&found["id"], &json!(action)), "{case:#}");
    assert_eq!(case["evidence"]["class"], class);
    let path = format!("/v1/cases/{}/resolve", case["id"].as_str().unwrap());
    let decision =
        |action: &str| json!({"action": action, "operator": "pia", "reason": "looked at the rows"});
    let only_seen = http.post(&path, &decision("acknowledge")).await;
    assert_eq!((only_seen.status, only_seen.code()), (409, "conflict"), "{only_seen:?}");
    for _ in 0..2 {
        let decided = http.post(&path, &decision(action)).await;
        assert_eq!((decided.status, &decided.body["state"]), (200, &json!("resolved")), "{decided:?}");
    }
    is_lifted(shop, stall).await;
    assert_eq!(http.reconcile("full").await["found"], json!({}));
    let acts = http.get(&format!("/v1/audit?subject=case {}", case["id"].as_str().unwrap())).await;
    assert_eq!(acts.body["items"][0]["operator"], "pia", "{acts:?}");
}

/// The freeze of reconciliation ends with the next comparison that is clean.
async fn is_lifted(shop: &Shop, stall: &Stall) {
    let http = &shop.server.http;
    wait_until(&format!("the end of the freeze of {}", stall.campaign), async || {
        let pool = http.get(&format!("/v1/pools/{}", stall.pool)).await;
        (pool.body["frozen"] == false).then_some(())
    })
    .await;
    assert_eq!(http.discrepancies("state=open").await, [] as [Value; 0]);
    wait_until("a sale", async || {
        let placed = http.place(&stall.campaign, "after", "CUP", 1).await;
        matches!(placed.status, 200 | 201).then_some(())
    })
    .await;
}

const ENTRY: &str = "pool, bucket, at, order_id, business_no, action, delta_available, delta_held, delta_sold, settled, \
                     from_state, to_state, order_version, source, actor, reason";
const ORDER: &str = "account, state, reason, version, home_pool, home_bucket, lines, hold_seconds, hold_seconds_sent, \
                     hold_ends_at, due_at, extended, amount_minor, currency, refund_due_since, detail, metadata, \
                     created_at, updated_at, limit_keys, campaign_id";

async fn each_fault_is_found_named_and_mended(on_postgres: bool) {
    let shop = Shop::open(on_postgres).await;
    shop.let_anything_be_changed().await;
    let http = &shop.server.http;
    let id = |text: &str| shop.raw.id(text);

    let stall = Stall::open(http, "drift").await;
    let sql = format!("UPDATE bucket SET available = available + 3 WHERE pool = {}", id(&stall.pool));
    freezes_until_decided(&shop, &stall, "balance_drift", &[sql], "accept_ledger").await;
    assert_eq!(http.balances(&stall.pool).await, (15, 3, 2), "the ledger held");

    let stall = Stall::open(http, "missing").await;
    let sql = format!("DELETE FROM ledger WHERE order_id = {} AND order_version = 1", id(&stall.sold));
    freezes_until_decided(&shop, &stall, "entry_missing", &[sql], "accept_balance").await;

    let stall = Stall::open(http, "double").await;
    let pool = id(&stall.pool);
    let double = format!(
        "INSERT INTO ledger (seq, {ENTRY}) SELECT (SELECT max(seq) + 1 FROM ledger WHERE pool = {pool}), {ENTRY} \
         FROM ledger WHERE order_id = {}",
        id(&stall.held)
    );
    let count = format!("UPDATE bucket SET ledger_seq = ledger_seq + 1 WHERE pool = {pool}");
    freezes_until_decided(&shop, &stall, "entry_duplicate", &[double, count], "accept_balance").await;

    let stall = Stall::open(http, "orphan").await;
    let orphan = "01937a5e-0000-7000-8000-00000000abcd";
    let sql = format!(
        "INSERT INTO orders (id, order_no, {ORDER}) SELECT {}, 'orphan', {ORDER} FROM orders WHERE id = {}",
        id(orphan),
        id(&stall.held)
    );
    let counted = format!(
        "UPDATE account_usage SET units = units + 2, open_holds = open_holds + 1 WHERE campaign_id = '{}' \
         AND account = 'account-orphan-held'",
        stall.campaign
    );
    freezes_until_decided(&shop, &stall, "order_without_stock", &[sql, counted], "accept_ledger").await;
    assert_eq!(http.get(&format!("/v1/orders/{orphan}")).await.body["state"], "failed");

    let stall = Stall::open(http, "gone").await;
    let sql = format!("DELETE FROM orders WHERE id = {}", id(&stall.held));
    let counted = format!(
        "UPDATE account_usage SET units = 0, open_holds = 0 WHERE campaign_id = '{}' AND account = 'account-gone-held'",
        stall.campaign
    );
    freezes_until_decided(&shop, &stall, "stock_without_order", &[sql, counted], "compensate").await;

    let stall = Stall::open(http, "half").await;
    let pool = id(&stall.pool);
    let half = format!(
        "INSERT INTO ledger (pool, bucket, seq, at, business_no, action, delta_available, delta_held, delta_sold, \
         source, actor, reason) SELECT pool, bucket, seq + 1, at, 'half', 'transfer_out', -2, 0, 0, 'transfer', 'x', '' \
         FROM ledger WHERE pool = {pool} AND seq = (SELECT max(seq) FROM ledger WHERE pool = {pool})"
    );
    let moved = format!(
        "UPDATE bucket SET ledger_seq = ledger_seq + 1, available = available - 2 WHERE pool = {pool}"
    );
    freezes_until_decided(&shop, &stall, "transfer_unpaired", &[half, moved], "compensate").await;

    let stall = Stall::open(http, "row").await;
    let sql = format!("UPDATE orders SET version = version + 3 WHERE id = {}", id(&stall.held));
    freezes_until_decided(&shop, &stall, "allocation_drift", &[sql], "accept_ledger").await;
    shop.end().await;
}

async fn what_is_safe_is_mended_at_once(on_postgres: bool) {
    let shop = Shop::open(on_postgres).await;
    shop.let_anything_be_changed().await;
    let http = &shop.server.http;
    let id = |text: &str| shop.raw.id(text);

    let stall = Stall::open(http, "late").await;
    let sql = format!(
        "UPDATE orders SET hold_ends_at = hold_ends_at - 7200000000, due_at = NULL WHERE id = {}",
        id(&stall.held)
    );
    is_repaired_at_once(&shop, "hold_overdue", &[sql]).await;
    assert_eq!(http.get(&format!("/v1/orders/{}", stall.held)).await.body["state"], "released");

    let stall = Stall::open(http, "paid").await;
    let held = id(&stall.held);
    let payment = format!(
        "INSERT INTO payment (provider, event_id, payment_id, order_id, outcome) VALUES \
         ('bank', 'lost', 'pay-lost', {held}, 'succeeded')"
    );
    let claim = format!(
        "INSERT INTO payment_claim (provider, payment_id, order_id) VALUES ('bank', 'pay-lost', {held})"
    );
    is_repaired_at_once(&shop, "paid_not_applied", &[payment, claim]).await;
    assert_eq!(http.get(&format!("/v1/orders/{}", stall.held)).await.body["state"], "sold");

    let stall = Stall::open(http, "usage").await;
    let sql = format!(
        "UPDATE account_usage SET units = units + 5 WHERE campaign_id = '{}' AND account = 'account-usage-held'",
        stall.campaign
    );
    is_repaired_at_once(&shop, "usage_drift", &[sql]).await;
    shop.end().await;
}

/// Another bucket than there is: a person must mend the row, and the freeze ends when it is mended. One that a person
/// has set stays.
async fn a_freeze_ends_when_its_reason_is_gone(on_postgres: bool) {
    let shop = Shop::open(on_postgres).await;
    let http = &shop.server.http;
    let stall = Stall::open(http, "sum").await;
    let set = async |buckets: u32| {
        let pool = shop.raw.id(&stall.pool);
        shop.raw.run(&format!("UPDATE pool SET buckets = {buckets} WHERE id = {pool}")).await;
    };
    set(2).await;
    let seen = run(&["reconcile", "--full", "--wait", "--format", "json", "--target", &http.base]).await;
    assert_eq!(seen.status.code(), Some(1), "something is open: {}", String::from_utf8_lossy(&seen.stderr));
    let seen: Value = serde_json::from_slice(&seen.stdout).unwrap();
    assert_eq!(
        (&seen["found"], &seen["open"][0]["class"]),
        (&json!({"bucket_sum_off": 1}), &json!("bucket_sum_off"))
    );
    set(1).await;
    let clean = run(&["reconcile", "--wait", "--target", &http.base]).await;
    assert_eq!(clean.status.code(), Some(0), "{}", String::from_utf8_lossy(&clean.stdout));
    is_lifted(&shop, &stall).await;
    let signed = json!({"operator": "pia", "reason": "counting"});
    assert_eq!(http.post(&format!("/v1/pools/{}/freeze", stall.pool), &signed).await.status, 200);
    set(2).await;
    http.reconcile("incremental").await;
    set(1).await;
    http.reconcile("incremental").await;
    let pool = http.get(&format!("/v1/pools/{}", stall.pool)).await;
    assert_eq!(pool.body["frozen"], true, "a person froze it");
    assert_eq!(http.post(&format!("/v1/pools/{}/unfreeze", stall.pool), &signed).await.status, 200);
    shop.end().await;
}

macro_rules! on_both {
    ($($case:ident: $sqlite:ident $postgres:ident),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $sqlite() {
            $case(false).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $postgres() {
            $case(true).await;
        }
    )*};
}

pub(super) use on_both;

on_both! {
    each_fault_is_found_named_and_mended: faults_are_found_on_sqlite faults_are_found_on_postgres,
    what_is_safe_is_mended_at_once: what_is_safe_is_mended_on_sqlite what_is_safe_is_mended_on_postgres,
    a_freeze_ends_when_its_reason_is_gone: a_freeze_ends_on_sqlite a_freeze_ends_on_postgres,
}
