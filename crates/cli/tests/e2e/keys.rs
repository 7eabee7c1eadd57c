//! Keys as their owners use them, and that no secret is seen where it must not be.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::process::Child;

use crate::support::{Answer, Http, Server, Start, binary, place_body, run, wait_until};

fn admin_key(printed: &[String]) -> &str {
    printed.iter().find_map(|line| line.strip_prefix("admin key, shown this once: ")).expect("a first key")
}

async fn as_key(http: &Http, key: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let bearer = format!("Bearer {key}");
    let mut headers = vec![("authorization", bearer.as_str())];
    headers.extend(body.map(|_| ("content-type", "application/json")));
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    http.send_raw(method, path, &headers, body).await
}

#[tokio::test]
async fn keys_are_made_listed_and_revoked_from_the_command_line() {
    let mut server = Server::start_with(Start::default()).await;
    let admin = admin_key(&server.printed).to_owned();
    let target = server.http.base.clone();
    let key = async |arguments: &[&str], key: &str| {
        let mut all = vec!["key"];
        all.extend(arguments);
        all.extend(["--target", &target, "--key", key, "--format", "json"]);
        let output = run(&all).await;
        let value = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        (output.status.code(), value, String::from_utf8(output.stderr).unwrap())
    };
    let create = ["create", "--name", "shop", "--role", "buyer", "--campaign", "spring"];
    let (status, made, _) = key(&create, &admin).await;
    assert_eq!((status, &made["campaigns"]), (Some(0), &json!(["spring"])));
    let shop = made["key"].as_str().unwrap();
    let orders = "/v1/orders?campaign_id=spring";
    assert_eq!(as_key(&server.http, shop, "GET", orders, None).await.status, 200);
    let (status, _, error) = key(&["list"], shop).await;
    assert_eq!(status, Some(2));
    assert!(error.contains("403 forbidden") && !error.contains(shop), "{error}");
    let (status, list, _) = key(&["list"], &admin).await;
    let roles: Vec<_> = list.as_array().unwrap().iter().map(|key| &key["role"]).collect();
    assert_eq!((status, roles.len()), (Some(0), 2));
    let id = made["id"].as_str().unwrap();
    for _ in 0..2 {
        let (status, revoked, _) = key(&["revoke", id], &admin).await;
        assert_eq!((status, &revoked["state"]), (Some(0), &json!("revoked")));
    }
    assert_eq!(as_key(&server.http, shop, "GET", orders, None).await.status, 401);
    let (status, _, error) = key(&["revoke", &admin[4..20]], &admin).await;
    assert!(status == Some(2) && error.contains("409 conflict"), "{error}");
    let ended = ["create", "--name", "n", "--role", "read", "--expires", "2020-01-01T00:00:00Z"];
    let (status, _, error) = key(&ended, &admin).await;
    assert!(status == Some(2) && error.contains("/expires_at"), "{error}");
    // The next start knows the key, and makes no other.
    server.restart(&Start::default()).await;
    assert_eq!(server.printed, Vec::<String>::new());
    assert_eq!(as_key(&server.http, &admin, "GET", "/v1/keys", None).await.status, 200);
    assert_eq!(as_key(&server.http, shop, "GET", orders, None).await.status, 401);
    server.finish().await;
}

/// A server whose every word is kept.
struct Overheard {
    child: Child,
    http: Http,
}

impl Overheard {
    async fn start(directory: &Path, name: &str, arguments: &[&str]) -> Self {
        let (out, log) = (directory.join(format!("{name}.out")), directory.join(format!("{name}.log")));
        let mut command = binary();
        command.args(["serve", "--listen", "127.0.0.1:0", "--database"]);
        command.arg(format!("sqlite:{}", directory.join("canary.db").display()));
        command.args(arguments).env("HOLDFAST_LOG", "trace").stdin(Stdio::null());
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&log).unwrap());
        let child = command.spawn().unwrap();
        let address = wait_until("the server", async || {
            let said = fs::read_to_string(&out).unwrap();
            said.lines().find_map(|line| line.strip_prefix("listening on ").map(str::to_owned))
        });
        Self { http: Http::new(&address.await), child }
    }

    async fn stop(mut self) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).unwrap()));
        kill_process(pid.expect("it runs"), Signal::TERM).unwrap();
        assert!(self.child.wait().await.unwrap().success());
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[expect(clippy::disallowed_methods, reason = "signatures are judged by the machine's clock")]
fn unix_now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// Secrets that the configuration holds.
struct Payments {
    standard: String,
    plain: String,
}

impl Payments {
    /// Notices with good and bad signatures; the answers.
    async fn notify(&self, http: &Http, heard: &mut Vec<Answer>) {
        let body = json!({"event_id": "e", "payment_id": "p", "campaign_id": "spring", "order_no": "A-1",
            "outcome": "succeeded"})
        .to_string();
        let (at, key) = (unix_now().to_string(), STANDARD.decode(&self.standard["whsec_".len()..]).unwrap());
        let good = format!("v1,{}", STANDARD.encode(mac(&key, &format!("m.{at}.{body}"))));
        let stripe = hex(mac(self.plain.as_bytes(), &format!("{at}.{body}")).as_slice());
        let mut statuses = Vec::new();
        for (provider, name, value, id) in [
            ("bank", "webhook-signature", good.clone(), "m"),
            ("bank", "webhook-signature", good.clone(), "other"),
            ("bank", "webhook-signature", self.standard.clone(), "m"),
            ("bank", "stripe-signature", format!("t={at},v1={}", self.standard), "m"),
            ("card", "stripe-signature", format!("t={at},v1={stripe}"), "m"),
            ("card", "stripe-signature", format!("t={at},v1={}", self.plain), "m"),
            ("card", "authorization", format!("Bearer {}", self.plain), "m"),
        ] {
            let headers = [
                ("content-type", "application/json"),
                ("webhook-id", id),
                ("webhook-timestamp", at.as_str()),
                (name, value.as_str()),
            ];
            let path = format!("/v1/payments/{provider}/notifications");
            let answer = http.send_raw("POST", &path, &headers, body.clone().into_bytes()).await;
            statuses.push(answer.status);
            heard.push(answer);
        }
        assert_eq!(statuses, [200, 401, 401, 401, 200, 401, 401]);
    }
}

/// A sale with good and bad requests, each with a key; the answers.
async fn sell(http: &Http, admin: &str, heard: &mut Vec<Answer>) {
    let signed = json!({"operator": "olga", "reason": "go"});
    let pool = json!({"campaign_id": "spring", "sku": "CUP", "supply": 10});
    let bad = json!({"campaign_id": " x", "lines": 7});
    for (method, path, body) in [
        ("PUT", "/v1/campaigns/spring", Some(json!({"name": "Spring"}))),
        ("POST", "/v1/campaigns/spring/open", Some(signed)),
        ("POST", "/v1/pools", Some(pool)),
        ("POST", "/v1/orders", Some(place_body("spring", "A-1", "CUP", 2))),
        ("POST", "/v1/orders", Some(place_body("spring", "A-2", "CUP", 99))),
        ("POST", "/v1/orders", Some(bad)),
        ("POST", "/v1/keys", Some(json!({"name": "n", "role": "boss"}))),
        ("GET", "/v1/keys", None),
        ("GET", "/v1/audit", None),
        ("GET", "/v1/ledger", None),
        ("GET", "/v1/nowhere", None),
        ("DELETE", "/v1/keys/0000000000000000", None),
        ("PATCH", "/v1/keys", None),
        ("GET", "/v1/orders?limit=0&unknown=1", None),
        ("GET", "/openapi.json", None),
    ] {
        heard.push(as_key(http, admin, method, path, body.as_ref()).await);
    }
    // What a client may get wrong with the key itself, and what no client should send.
    let (bearer, json) = (format!("Bearer {admin}"), ("content-type", "application/json"));
    let deep = "[".repeat(100_000);
    for (path, headers, body) in [
        ("/v1/orders", vec![json, ("authorization", bearer.as_str())], admin.as_bytes().to_vec()),
        ("/v1/orders", vec![json, ("authorization", bearer.as_str())], deep.into_bytes()),
        ("/v1/orders", vec![json, ("authorization", bearer.as_str())], b"{\"a\":\"\xff\"}".to_vec()),
        ("/v1/orders", vec![json, ("x-api-key", admin)], b"{}".to_vec()),
        ("/v1/orders", vec![json, ("authorization", admin)], b"{}".to_vec()),
        ("/v1/orders", vec![json, ("accept", admin)], b"{}".to_vec()),
        (&format!("/v1/orders?key={admin}"), vec![json], b"{}".to_vec()),
        (&format!("/v1/keys/{admin}/x"), vec![json], b"{}".to_vec()),
    ] {
        heard.push(http.send_raw("POST", path, &headers, body).await);
    }
    for wrong in [format!("{admin}x"), admin.to_uppercase(), admin[..63].to_owned(), admin.replace('_', "-")]
    {
        heard.push(as_key(http, &wrong, "GET", "/v1/keys", None).await);
    }
}

#[tokio::test]
async fn no_secret_is_seen_in_output_answers_or_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let payments = Payments {
        standard: format!("whsec_{}", STANDARD.encode(b"canary of the bank, 32 bytes long")),
        plain: "canary-of-the-card-scheme-0123456789".into(),
    };
    let first = Overheard::start(path, "first", &[]).await;
    let said = fs::read_to_string(path.join("first.out")).unwrap();
    let admin = admin_key(&said.lines().map(str::to_owned).collect::<Vec<_>>()).to_owned();
    let body = json!({"name": "shop", "role": "buyer"});
    let shop = as_key(&first.http, &admin, "POST", "/v1/keys", Some(&body)).await.text("key");
    first.stop().await;
    assert_eq!(said.matches(&admin[21..]).count(), 1, "shown once");

    let (bank, card) = (format!("bank={}", payments.standard), format!("card={}", payments.plain));
    let secrets = ["--payment-secret", &bank, "--payment-secret", &card];
    let second = Overheard::start(path, "second", &secrets).await;
    let mut heard = Vec::new();
    sell(&second.http, &admin, &mut heard).await;
    payments.notify(&second.http, &mut heard).await;
    let begun = Instant::now();
    for _ in 0..200 {
        heard.push(as_key(&second.http, "hfk_wrong", "GET", "/v1/orders", None).await);
    }
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    let order = place_body("spring", "A-3", "CUP", 1);
    let placed = as_key(&second.http, &shop, "POST", "/v1/orders", Some(&order)).await;
    assert_eq!(placed.status, 201, "{placed:?}");
    heard.push(placed);
    let target = ["--target", &second.http.base, "--key", &admin];
    let list = run(&[&["key", "list"][..], &target].concat()).await;
    let fails = run(&["key", "list", "--target", "http://127.0.0.1:1/x?", "--key", &admin]).await;
    second.stop().await;

    let mut seen: Vec<(String, Vec<u8>)> = Vec::new();
    for file in ["first.log", "second.log", "second.out", "canary.db"] {
        seen.push((file.to_owned(), fs::read(path.join(file)).unwrap()));
    }
    for file in ["canary.db-wal", "canary.db.state"] {
        seen.extend(fs::read(path.join(file)).ok().map(|bytes| (file.to_owned(), bytes)));
    }
    seen.extend(heard.iter().map(|answer| ("an answer".to_owned(), answer.raw.clone())));
    for output in [list, fails] {
        seen.push(("a command".to_owned(), [output.stdout, output.stderr].concat()));
    }
    let plain = &payments.standard["whsec_".len()..];
    for secret in [&admin[21..], &shop[21..], plain, &payments.plain, "canary of the bank"] {
        for (place, bytes) in &seen {
            assert!(!holds(bytes, secret.as_bytes()), "{secret:?} is in {place}");
        }
    }
    // The search finds what is there: the ids, and of the secrets the hashes.
    let database: Vec<&[u8]> =
        seen.iter().filter(|(place, _)| place.starts_with("canary")).map(|(_, bytes)| &**bytes).collect();
    let database = database.concat();
    for key in [&admin, &shop] {
        assert!(holds(&database, &key.as_bytes()[4..20]));
        assert!(holds(&database, &Sha256::digest(&key.as_bytes()[21..])));
    }
    let log = fs::read_to_string(path.join("second.log")).unwrap();
    let told = log.matches("authentications failed").count();
    assert!((1..=seconds + 5).contains(&told), "{told} lines for 200 failures in {seconds} s");
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
