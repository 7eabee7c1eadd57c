//! The judge of histories must be able to condemn.

use std::sync::Arc;

use crate::support::{History, Load, Server, wait_until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_that_the_rows_do_not_bear_out_is_found() {
    let server = Server::start().await;
    let history = Arc::new(History::default());
    history.open(&server.http).await;
    let load = Load::start(&history, std::slice::from_ref(&server.http), 4);
    wait_until("some orders", async || (history.successes() > 50).then_some(())).await;
    load.stop().await;
    history.check(&server.http).await;
    let database = rusqlite::Connection::open(server.database()).unwrap();
    // Order 2 was paid.
    for falsehood in [
        "order_no = 'x2'",
        "state = 'held', version = 1",
        "version = 3",
        "id = x'00000000000070008000000000000000'",
    ] {
        database
            .execute("CREATE TEMP TABLE truth AS SELECT * FROM orders WHERE order_no = 'o2'", [])
            .unwrap();
        let change = format!("UPDATE orders SET {falsehood} WHERE order_no = 'o2'");
        assert_eq!(database.execute(&change, []).unwrap(), 1, "{falsehood}");
        let (judge, http) = (Arc::clone(&history), server.http.clone());
        let judged = tokio::spawn(async move { judge.check(&http).await }).await;
        assert!(judged.unwrap_err().is_panic(), "{falsehood} was not found");
        let back = "UPDATE orders SET (id, order_no, state, version) = \
                    (SELECT id, order_no, state, version FROM truth) WHERE order_no IN ('o2', 'x2')";
        assert_eq!(database.execute(back, []).unwrap(), 1);
        database.execute("DROP TABLE truth", []).unwrap();
    }
    history.check(&server.http).await;
    server.finish().await;
}
