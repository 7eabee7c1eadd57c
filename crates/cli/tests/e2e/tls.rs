//! TLS with certificates made here.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Server, Start, run, wait_until};

/// The files of a certificate, and whoever trusts it.
struct Files {
    directory: TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

fn self_signed() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap()
}

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
        let files = Self { directory, certificate, key };
        files.renew();
        files
    }

    /// Writes another certificate; the client that trusts it and no other.
    fn renew(&self) -> reqwest::Client {
        let made = self_signed();
        fs::write(&self.certificate, made.cert.pem()).unwrap();
        fs::write(&self.key, made.signing_key.serialize_pem()).unwrap();
        self.client()
    }

    /// A client that trusts the certificate that is in the file now.
    fn client(&self) -> reqwest::Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let pem = fs::read(&self.certificate).unwrap();
        let trusted = reqwest::Certificate::from_pem_bundle(&pem).unwrap();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20));
        client.tls_certs_only(trusted).build().unwrap()
    }

    fn start(&self, log: &Path) -> Start {
        let file = |path: &Path| path.to_str().unwrap().to_owned();
        Start {
            arguments: vec!["--auth".into(), "off".into()],
            environment: vec![
                ("HOLDFAST_TLS_CERT".into(), file(&self.certificate)),
                ("HOLDFAST_TLS_KEY".into(), file(&self.key)),
            ],
            log: Some(log.to_owned()),
        }
    }
}

async fn is_answered(client: &reqwest::Client, base: &str) -> bool {
    client.get(format!("{base}/readyz")).send().await.is_ok_and(|answer| answer.status() == 200)
}

#[tokio::test]
async fn the_certificate_is_replaced_while_the_server_runs() {
    let files = Files::new();
    let log = files.directory.path().join("log");
    let old = files.client();
    let server = Server::start_with(files.start(&log)).await;
    let base = server.http.base.clone();
    assert!(base.starts_with("https://127.0.0.1:"), "{base}");
    assert!(is_answered(&old, &base).await);
    assert!(!is_answered(&Files::new().client(), &base).await, "the certificate vouches for itself only");

    let new = files.renew();
    server.hang_up();
    wait_until("the new certificate", async || is_answered(&new, &base).await.then_some(())).await;
    assert!(is_answered(&old, &base).await, "a connection that is open goes on");
    let again = files.client();
    for bad in ["", "nonsense", &fs::read_to_string(&files.key).unwrap()] {
        fs::write(&files.certificate, bad).unwrap();
        let before = fs::read_to_string(&log).unwrap().matches("the certificate stays as it was").count();
        server.hang_up();
        wait_until("the complaint", async || {
            let said = fs::read_to_string(&log).unwrap();
            (said.matches("the certificate stays as it was").count() > before).then_some(())
        })
        .await;
        assert!(is_answered(&again, &base).await, "{bad:?} changes nothing");
    }
    // Of another pair than the key.
    fs::write(&files.certificate, self_signed().cert.pem()).unwrap();
    server.hang_up();
    wait_until("the complaint", async || {
        fs::read_to_string(&log).unwrap().contains("cannot be used").then_some(())
    })
    .await;
    assert!(is_answered(&again, &base).await);
    assert!(!is_answered(&files.client(), &base).await);
    let said = fs::read_to_string(&log).unwrap();
    assert!(!said.contains("BEGIN"), "no file is shown: {said}");
    server.finish().await;
}

#[tokio::test]
async fn a_request_in_the_clear_is_told_so() {
    let files = Files::new();
    let server = Server::start_with(files.start(&files.directory.path().join("log"))).await;
    let address = server.http.base.strip_prefix("https://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let sent = "POST /v1/orders HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello";
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.expect("an answer and an orderly end");
    assert!(said.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{said}");
    assert!(said.contains("application/problem+json") && said.contains("https://"), "{said}");
    assert!(is_answered(&files.client(), &server.http.base).await);
    server.finish().await;
}

#[tokio::test]
async fn commands_reach_a_server_behind_tls() {
    let files = Files::new();
    let mut start = files.start(&files.directory.path().join("log"));
    start.arguments.clear();
    let server = Server::start_with(start).await;
    let printed = &server.printed;
    let key = printed.iter().find_map(|line| line.strip_prefix("admin key, shown this once: ")).unwrap();
    let ca = files.certificate.to_str().unwrap();
    let base = server.http.base.as_str();
    let list = ["key", "list", "--target", base, "--key", key, "--format", "json"];
    let output = run(&[&list[..], &["--ca", ca]].concat()).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let keys: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(keys[0]["name"], json!("first admin"));
    let wrong = Files::new();
    let output = run(&[&list[..], &["--ca", wrong.certificate.to_str().unwrap()]].concat()).await;
    assert_eq!(output.status.code(), Some(2), "an unknown certificate is not trusted");
    let output = run(&[&list[..], &["--ca", wrong.key.to_str().unwrap()]].concat()).await;
    assert_eq!(output.status.code(), Some(2), "no certificate in it");
    server.finish().await;
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_known_at_the_start() {
    let files = Files::new();
    fs::write(&files.key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let started = Server::start_on(&directory.path().join("test.db"), &files.start(&log)).await;
    assert_eq!(started.err().and_then(|status| status.code()), Some(2));
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("the certificate and its key cannot be used"), "{said}");
    assert!(!directory.path().join("test.db").exists(), "nothing was opened");
}
