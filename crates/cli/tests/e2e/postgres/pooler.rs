//! Few connections, and connections that are not one's own.

use holdfast_testkit::{PgBouncer, PoolMode};

use super::{Shop, authority, rounds, without_keys};
use crate::pressure::leave_by_the_thousands;
use crate::support::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_connections_survive_5000_clients_that_hang_up() {
    let (_postgres, url) = authority().await;
    let node = Server::start_at(&format!("{url}?connections=2"), &without_keys()).await.unwrap();
    leave_by_the_thousands(node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_shares_connections_by_transaction_will_do() {
    let (postgres, _) = authority().await;
    let pooler = PgBouncer::start(&postgres, PoolMode::Transaction).await.unwrap();
    let shop = Shop::open(&format!("{}?statements=unnamed", pooler.url("shop")), 1).await;
    for _ in 0..rounds() {
        pooler.kill().unwrap();
        shop.is_away().await;
        pooler.restart().await.unwrap();
        shop.recovers().await;
        assert!(postgres.cut_connections().await.unwrap() > 0);
        shop.recovers().await;
    }
    shop.close().await;
}
