//! An endpoint against a provider that answers as it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use holdfast_core::id::{AttemptId, CampaignId, OrderId, OrderKey, OrderNo, Provider};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::breaker::OPEN;

/// A provider that hangs up, until it is told to answer; how often it was asked.
struct Bank {
    endpoint: Endpoint,
    http: Client,
    asked: Arc<AtomicUsize>,
    answers: Arc<AtomicBool>,
}

impl Bank {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/status", listener.local_addr().unwrap());
        let (asked, answers) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (heard, says) = (Arc::clone(&asked), Arc::clone(&answers));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 4_096]).await.unwrap();
                heard.fetch_add(1, Ordering::SeqCst);
                if says.load(Ordering::SeqCst) {
                    let head = "HTTP/1.1 200 OK\r\ncontent-length: 19\r\nconnection: close\r\n\r\n";
                    stream.write_all(format!("{head}{{\"status\":\"failed\"}}").as_bytes()).await.unwrap();
                }
            }
        });
        let endpoint = Endpoint::new("bank", &address, None).unwrap();
        // The library wants its cryptography chosen, also where none is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        Self { endpoint, http, asked, answers }
    }

    async fn ask(&self) -> PaymentStatus {
        let question = StatusQuestion {
            provider: Provider::new("bank").unwrap(),
            attempt_id: AttemptId::new("a").unwrap(),
            order: OrderId(1),
            key: OrderKey { campaign: CampaignId::new("c").unwrap(), order_no: OrderNo::new("o").unwrap() },
        };
        self.endpoint.ask(&self.http, &question).await
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// As if the breaker had opened just so long ago that the next question tries it.
    fn time_passes(&self) {
        self.endpoint.breaker().failed(Instant::now().checked_sub(OPEN).unwrap());
    }
}

#[tokio::test]
async fn a_provider_that_fails_is_left_alone_then_tried_once_then_asked_again() {
    let bank = Bank::open().await;
    for tries in [2, 4, 5, 5, 5] {
        assert_eq!(bank.ask().await, PaymentStatus::Unknown);
        assert_eq!(bank.asked(), tries, "at the fifth failure it is left alone");
    }
    bank.time_passes();
    for _ in 0..2 {
        assert_eq!(bank.ask().await, PaymentStatus::Unknown);
        assert_eq!(bank.asked(), 6, "one try, and it is left alone again");
    }
    bank.answers.store(true, Ordering::SeqCst);
    assert_eq!(bank.ask().await, PaymentStatus::Unknown, "nobody knows that it is back");
    bank.time_passes();
    for tries in [7, 8, 9] {
        assert_eq!(bank.ask().await, PaymentStatus::Failed { payment_id: None });
        assert_eq!(bank.asked(), tries);
    }
}

#[test]
fn only_addresses_that_an_operator_may_mean_are_taken() {
    for good in [
        "https://bank.example/status?shop=7",
        "http://127.0.0.1:8000/s",
        "http://[::1]/",
        "http://localhost/",
    ] {
        assert!(Endpoint::new("bank", good, Some("k")).is_ok(), "{good}");
    }
    for bad in [
        "http://bank.example/",
        "http://169.254.169.254/",
        "http://127.0.0.1.example/",
        "file:///etc/passwd",
        "ftp://bank.example/",
        "https://user:hush@bank.example/",
        "bank.example",
        "",
    ] {
        let error = Endpoint::new("bank", bad, None).err().expect("refused");
        assert!(!error.to_string().contains("hush"), "{error}");
    }
    assert!(Endpoint::new("bank", "https://bank.example/", Some("a\nb")).is_err());
}
