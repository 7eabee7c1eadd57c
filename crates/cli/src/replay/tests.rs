//! The rules of a replay, on made data and, where they are at hand, on the real days.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use indicatif::ProgressBar;

use super::book::Taken;
use super::law::{Opening, Summary, Tally};
use super::plan::{Adjustment, Invoice, Line, Order, Plan, Pool, Return, Rules};
use super::rows::{self, Columns};
use super::run::replay;
use super::shop::{Moved, Placed, Shop, Stock};

const HEADER: &str = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n";

fn planned(lines: &[(&str, &str, i32, &str)], percent: u32) -> Plan {
    let rows = lines.iter().map(|(no, sku, quantity, customer)| {
        format!("{no},{sku},\"THING, MADE\",{quantity},2020-01-01 08:00:00,1.0,{customer},Nowhere\n")
    });
    let text: String = std::iter::once(HEADER.to_owned()).chain(rows).collect();
    Plan::new(rows::read(text.as_bytes(), &Columns::online_retail()).unwrap(), Rules::OnlineRetail, percent)
        .unwrap()
}

/// Stock in a table, with rules of its own so that it can disagree.
struct Table {
    stock: Mutex<HashMap<String, Stock>>,
    /// Answers every payment as if the provider had been doubted.
    doubts_payments: bool,
}

impl Table {
    fn new(plan: &Plan) -> Self {
        let stock = plan.pools.iter().map(|Pool { sku, supply }| {
            let row = Stock { sku: sku.clone(), supply: *supply, available: *supply, held: 0, sold: 0 };
            (sku.clone(), row)
        });
        Self { stock: Mutex::new(stock.collect()), doubts_payments: false }
    }
}

fn by_sku(order: &Order) -> HashMap<&str, u64> {
    let mut units: HashMap<&str, u64> = HashMap::new();
    for line in &order.lines {
        *units.entry(&line.sku).or_default() += u64::from(line.quantity);
    }
    units
}

impl Shop for Table {
    async fn place(&self, order: &Order) -> Result<Placed> {
        let mut stock = self.stock.lock().unwrap();
        let units = by_sku(order);
        if units.iter().any(|(sku, units)| stock[*sku].available < *units) {
            return Ok(Placed::SoldOut);
        }
        for (sku, units) in units {
            let row = stock.get_mut(sku).unwrap();
            row.available -= units;
            row.held += units;
        }
        Ok(Placed::Held(format!("id-{}", order.order_no)))
    }

    async fn pay(&self, order: &Order, order_id: &str) -> Result<Moved> {
        assert_eq!(order_id, format!("id-{}", order.order_no));
        if self.doubts_payments {
            return Ok(Moved::Other("in_review".into()));
        }
        let mut stock = self.stock.lock().unwrap();
        for (sku, units) in by_sku(order) {
            let row = stock.get_mut(sku).unwrap();
            row.held -= units;
            row.sold += units;
        }
        Ok(Moved::Done)
    }

    async fn adjust(&self, adjustment: &Adjustment) -> Result<Moved> {
        let mut stock = self.stock.lock().unwrap();
        let row = stock.get_mut(&adjustment.sku).unwrap();
        let units = u64::from(adjustment.units);
        if row.available < units {
            return Ok(Moved::Refused);
        }
        row.available -= units;
        row.supply -= units;
        Ok(Moved::Done)
    }

    async fn refund(&self, row: &Return, taken: &Taken) -> Result<Moved> {
        let mut stock = self.stock.lock().unwrap();
        let pool = stock.get_mut(&row.sku).unwrap();
        pool.sold -= taken.units();
        pool.available += taken.units();
        Ok(Moved::Done)
    }

    async fn stock(&self) -> Result<Vec<Stock>> {
        Ok(self.stock.lock().unwrap().values().cloned().collect())
    }
}

async fn replayed(plan: Plan, table: Table, in_flight: usize) -> (Summary, Tally) {
    let opening = Opening::new(&plan);
    let table = Arc::new(table);
    let tally = replay(Arc::clone(&table), plan.invoices, in_flight, &ProgressBar::hidden()).await.unwrap();
    let stock = table.stock().await.unwrap();
    (Summary::new(&opening, &tally, &stock), tally)
}

async fn summed(plan: Plan, in_flight: usize) -> Summary {
    let table = Table::new(&plan);
    replayed(plan, table, in_flight).await.0
}

#[test]
fn rows_become_invoices_in_order_of_first_appearance() {
    let plan = planned(
        &[
            ("100", "cup", 2, "1.0"),
            ("101", "CUP", 3, ""),
            ("100", "cup", 4, "1.0"),
            ("101", "pot", -7, ""),
            ("C102", "cup", -1, "1.0"),
            ("103", "POST", -2, ""),
            ("100", "pot", 0, "1.0"),
            ("C102", "cup", 1, "1.0"),
        ],
        100,
    );
    let line = |sku: &str, quantity| Line { sku: sku.into(), quantity };
    let order = |rank, order_no: &str, account: &str, lines| {
        Some(Order { rank, order_no: order_no.into(), account: account.into(), lines })
    };
    let adjustment = |invoice: &str, line, sku: &str, units| {
        vec![Adjustment { invoice: invoice.into(), line, sku: sku.into(), units }]
    };
    let returned =
        Return { invoice: "C102".into(), line: 6, account: "1.0".into(), sku: "cup".into(), units: 1 };
    let expected = [
        Invoice { order: order(0, "100", "1.0", vec![line("cup", 2), line("cup", 4)]), ..Invoice::default() },
        Invoice {
            order: order(1, "101", "guest-101", vec![line("CUP", 3)]),
            adjustments: adjustment("101", 5, "pot", 7),
            returns: vec![],
        },
        Invoice { returns: vec![returned], ..Invoice::default() },
        Invoice { adjustments: adjustment("103", 7, "POST", 2), ..Invoice::default() },
    ];
    assert_eq!(plan.invoices, expected);
    assert_eq!(plan.skipped_rows, 2, "0 units, and a positive cancellation");
}

#[test]
fn supply_is_rounded_down_by_sku_and_cancellations_add_nothing() {
    let plan = planned(
        &[
            ("1", "cup", 3, ""),
            ("1", "Cup", 3, ""),
            ("2", "cup", 4, ""),
            ("C3", "cup", 9, ""),
            ("C3", "D", -1, ""),
        ],
        50,
    );
    let pool = |sku: &str, supply| Pool { sku: sku.into(), supply };
    assert_eq!(plan.pools, [pool("cup", 3), pool("Cup", 1), pool("D", 0)]);
}

#[test]
fn plain_columns_know_no_cancellations() {
    let text = "No,Item,Qty\nC1,a,2\nC1,b,-1\nC2,a,-5\n";
    let columns: Columns = "order=No,sku=Item,quantity=Qty".parse().unwrap();
    let plan = Plan::new(rows::read(text.as_bytes(), &columns).unwrap(), Rules::Plain, 100).unwrap();
    let line = Line { sku: "a".into(), quantity: 2 };
    let order = Order { rank: 0, order_no: "C1".into(), account: "guest-C1".into(), lines: vec![line] };
    let invoices = [Invoice { order: Some(order), ..Invoice::default() }, Invoice::default()];
    assert_eq!((plan.invoices.as_slice(), plan.skipped_rows), (invoices.as_slice(), 2));
}

/// One of each: sold, sold out, given back over two orders, given back too much, written off, refused.
const MIXED: &[(&str, &str, i32, &str)] = &[
    ("1", "cup", 6, "ann"),
    ("1", "cup", 2, "ann"),
    ("2", "cup", 3, "ann"),
    ("3", "cup", 90, "bob"),
    ("C4", "cup", -4, "ann"),
    ("C4", "cup", -100, "ann"),
    ("C5", "cup", -2, "eve"),
    ("6", "cup", -5, ""),
    ("6", "cup", -500, ""),
];

#[tokio::test]
async fn a_replay_one_at_a_time_is_exact() {
    let summary = summed(planned(MIXED, 50), 1).await;
    let expected = Summary {
        pools: 1,
        opening_units: 50,
        orders: 3,
        sold_orders: 2,
        sold_out_orders: 1,
        adjustments_applied: 1,
        adjustments_refused: 1,
        adjusted_units: 5,
        // 4 units: 3 of order 2 and 1 of order 1; then the other 7 of order 1.
        refunds: 3,
        refunded_units: 11,
        unmatched_return_units: 93 + 2,
        available_units: 45,
        held_units: 0,
        sold_units: 0,
        law: "ok".into(),
    };
    assert_eq!(summary, expected);
    assert!(summary.passed());
}

#[tokio::test]
async fn the_law_holds_with_many_in_flight() {
    let summary = summed(planned(MIXED, 50), 64).await;
    assert_eq!((summary.law.as_str(), summary.orders), ("ok", 3));
}

#[tokio::test]
async fn the_result_has_exactly_the_agreed_keys() {
    let json = serde_json::to_value(summed(planned(MIXED, 50), 1).await).unwrap();
    let mut keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let mut agreed = [
        "pools",
        "opening_units",
        "orders",
        "sold_orders",
        "sold_out_orders",
        "adjustments_applied",
        "adjustments_refused",
        "adjusted_units",
        "refunds",
        "refunded_units",
        "unmatched_return_units",
        "available_units",
        "held_units",
        "sold_units",
        "law",
    ];
    keys.sort_unstable();
    agreed.sort_unstable();
    assert_eq!(keys, agreed);
}

#[tokio::test]
async fn an_order_that_is_neither_sold_nor_sold_out_fails_the_check() {
    let plan = planned(MIXED, 50);
    let table = Table { doubts_payments: true, ..Table::new(&plan) };
    let (summary, tally) = replayed(plan, table, 1).await;
    assert_eq!((summary.law.as_str(), summary.held_units), ("ok", 11));
    assert!(!summary.passed());
    assert_eq!(tally.strange, ["payment of 1: in_review", "payment of 2: in_review"]);
}

#[tokio::test]
async fn a_unit_that_no_answer_explains_breaks_the_law() {
    type Tamper = fn(&mut Stock);
    let tampered: [(Tamper, &str); 4] = [
        (|row| row.available += 1, "\"cup\": supply 3, but 1 + 0 + 3 in it"),
        (|row| (row.supply, row.available) = (4, 1), "\"cup\": opened with 3, 0 written off, but supply 4"),
        (|row| (row.held, row.sold) = (1, 2), "\"cup\": 1 held, but the answers say 0"),
        (|row| (row.available, row.sold) = (1, 2), "\"cup\": 2 sold, but the answers say 3"),
    ];
    for (tamper, breach) in tampered {
        let plan = planned(&[("1", "cup", 3, "ann")], 100);
        let opening = Opening::new(&plan);
        let table = Arc::new(Table::new(&plan));
        let tally = replay(Arc::clone(&table), plan.invoices, 1, &ProgressBar::hidden()).await.unwrap();
        let mut stock = table.stock().await.unwrap();
        assert_eq!(Summary::new(&opening, &tally, &stock).law, "ok");
        stock.iter_mut().for_each(tamper);
        let summary = Summary::new(&opening, &tally, &stock);
        assert_eq!((summary.law.as_str(), summary.passed()), (breach, false));
    }
}

fn retail_directory() -> PathBuf {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("HOLDFAST_RETAIL_DIR")
        .map_or_else(|| workspace.join("../shared/data/retail"), PathBuf::from)
}

/// Day, percent, then the expected figures: pools, opening, orders, sold, sold out, adjustments applied,
/// refused, units, refunds, units, unmatched, available, held, sold.
const DAYS: [(&str, u32, [u64; 14]); 4] = [
    ("2010-12-01", 80, [1351, 20928, 136, 38, 98, 0, 1, 0, 0, 0, 183, 17617, 0, 3311]),
    ("2010-12-01", 100, [1351, 27007, 136, 136, 0, 0, 1, 0, 1, 6, 177, 6, 0, 27001]),
    ("2011-12-05", 80, [1774, 34881, 132, 37, 95, 0, 3, 0, 1, 40, 85, 32752, 0, 2129]),
    ("2011-12-05", 100, [1774, 44664, 132, 132, 0, 0, 3, 0, 1, 40, 85, 40, 0, 44624]),
];

fn figures(s: &Summary) -> [u64; 14] {
    [
        u64::try_from(s.pools).unwrap(),
        s.opening_units,
        s.orders,
        s.sold_orders,
        s.sold_out_orders,
        s.adjustments_applied,
        s.adjustments_refused,
        s.adjusted_units,
        s.refunds,
        s.refunded_units,
        s.unmatched_return_units,
        s.available_units,
        s.held_units,
        s.sold_units,
    ]
}

#[tokio::test]
async fn the_sample_gives_figures_that_were_worked_out_by_other_means() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../samples/retail-sample.csv");
    let text = std::fs::read(path).unwrap();
    for (percent, expected) in [
        (80, [15, 216, 12, 6, 6, 2, 1, 6, 2, 6, 64, 114, 0, 96]),
        (100, [15, 277, 12, 12, 0, 0, 3, 0, 6, 39, 31, 39, 0, 238]),
    ] {
        let rows = rows::read(&text, &Columns::online_retail()).unwrap();
        let summary = summed(Plan::new(rows, Rules::OnlineRetail, percent).unwrap(), 1).await;
        assert_eq!((figures(&summary), summary.law.as_str()), (expected, "ok"), "{percent} %");
    }
}

#[tokio::test]
async fn real_days_give_the_known_figures() {
    for (day, percent, expected) in DAYS {
        let path = retail_directory().join(format!("{day}.csv"));
        let Ok(file) = std::fs::read(&path) else {
            assert!(std::env::var_os("CI").is_none(), "{} is missing", path.display());
            eprintln!("not run: {} is not here", path.display());
            continue;
        };
        let rows = rows::read(&file, &Columns::online_retail()).unwrap();
        let plan = Plan::new(rows, Rules::OnlineRetail, percent).unwrap();
        let summary = summed(plan, 1).await;
        assert_eq!((figures(&summary), summary.law.as_str()), (expected, "ok"), "{day} at {percent} %");
    }
}
