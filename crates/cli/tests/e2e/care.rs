//! The care of a server: doctor, configuration, service manager, completions and manual pages.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use holdfast_testkit::Redis;
use serde_json::Value;
use tokio::net::UnixDatagram;

use crate::support::{Server, Start, binary, run};

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

fn finding<'a>(diagnosis: &'a Value, check: &str) -> &'a Value {
    let found = diagnosis["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == check);
    found.unwrap_or_else(|| panic!("no {check}: {diagnosis:#}"))
}

async fn examined(database: &Path) -> (Option<i32>, Value) {
    let output = run(&["doctor", "--database", &url(database), "--format", "json"]).await;
    let diagnosis: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let unsafe_ =
        diagnosis["findings"].as_array().unwrap().iter().any(|finding| finding["level"] == "unsafe");
    assert_eq!(diagnosis["ok"], !unsafe_);
    assert_eq!(output.status.code(), Some(i32::from(unsafe_)));
    (output.status.code(), diagnosis)
}

#[tokio::test]
async fn the_doctor_examines_a_database_beside_its_server() {
    let server = Server::start().await;
    let database = server.database().to_owned();
    let (_, diagnosis) = examined(&database).await;
    // Where tests run the directory may be in memory or in layers; nothing else may be unsafe.
    for finding in diagnosis["findings"].as_array().unwrap() {
        assert!(finding["level"] != "unsafe" || finding["check"] == "file_system", "{finding}");
    }
    assert_eq!(finding(&diagnosis, "database")["found"], "a server has it open");
    assert_eq!(finding(&diagnosis, "journal_mode")["found"], "wal");
    for check in
        ["file_system", "free_space", "flush", "open_files", "sqlite", "permissions", "quick_check", "schema"]
            .iter()
            .chain(&["synchronous", "log_size", "clock", "cases"])
    {
        finding(&diagnosis, check);
    }
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (status, diagnosis) = examined(&database).await;
    assert_eq!((status, &finding(&diagnosis, "permissions")["level"]), (Some(1), &"unsafe".into()));
    let shown = run(&["doctor", "--database", &url(&database)]).await;
    assert!(String::from_utf8_lossy(&shown.stdout).ends_with("do not sell like this\n"));
    server.finish().await;
}

#[tokio::test]
async fn the_doctor_examines_the_redis_of_the_cached_path() {
    let directory = tempfile::tempdir().unwrap();
    let database = url(&directory.path().join("new.db"));
    let redis = Redis::start().await.unwrap();
    let diagnosis = async || {
        let output =
            run(&["doctor", "--database", &database, "--redis", &redis.url(), "--format", "json"]).await;
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let sound = diagnosis().await;
    for check in ["redis", "redis_eviction", "redis_memory", "redis_persistence"] {
        assert_eq!(finding(&sound, check)["level"], "ok", "{sound:#}");
    }
    for (name, value) in [("maxmemory", "900mb"), ("maxmemory-policy", "allkeys-lru")] {
        redis.command(&["CONFIG", "SET", name, value]).await.unwrap();
    }
    let evicting = diagnosis().await;
    assert_eq!(finding(&evicting, "redis_eviction")["level"], "unsafe", "{evicting:#}");
    redis.kill().unwrap();
    let gone = diagnosis().await;
    assert_eq!(
        (&gone["ok"], &finding(&gone, "redis")["level"]),
        (&false.into(), &"unsafe".into()),
        "{gone:#}"
    );
}

#[tokio::test]
async fn a_value_comes_from_a_flag_else_the_environment_else_the_file_else_the_default() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("holdfast.toml");
    let text = "auth = \"off\"\nlog_format = \"json\"\npayment_secrets = [\"bank=hush\"]\n";
    std::fs::write(&file, text).unwrap();
    let mut command = binary();
    command.args(["config", "check", "--format", "json", "--config"]).arg(&file);
    let output = command.env("HOLDFAST_LOG_FORMAT", "text").output().await.unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !told.contains("hush"), "{told}");
    let effective: Value = serde_json::from_str(&told).unwrap();
    let option = |key: &str| {
        let option = &effective["options"][key];
        (option["value"].as_str().map(str::to_owned), option["source"].as_str().unwrap().to_owned())
    };
    let from_file = format!("file {}", file.display());
    assert_eq!(option("auth"), (Some("off".into()), from_file.clone()));
    assert_eq!(option("log_format"), (Some("text".into()), "environment HOLDFAST_LOG_FORMAT".into()));
    assert_eq!(option("payment_secrets"), (Some("(hidden)".into()), from_file));
    assert_eq!(option("listen"), (Some("127.0.0.1:8080".into()), "default".into()));

    // The server reads the same: without a key by the file, with one by the environment.
    let config = |environment: &[(&str, &str)]| Start {
        arguments: vec!["--config".into(), file.display().to_string()],
        environment: environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        ..Start::default()
    };
    let server = Server::start_with(config(&[])).await;
    assert_eq!(server.http.get("/v1/campaigns").await.status, 200);
    server.finish().await;
    let server = Server::start_with(config(&[("HOLDFAST_AUTH", "on")])).await;
    assert_eq!(server.http.get("/v1/campaigns").await.status, 401);
    server.finish().await;
}

#[tokio::test]
async fn a_key_that_is_not_known_is_named_and_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("holdfast.toml");
    std::fs::write(&file, "lisen = \"127.0.0.1:1\"\n").unwrap();
    let named = file.to_str().unwrap();
    for arguments in [["config", "check", "--config", named].as_slice(), &["serve", "--config", named]] {
        let output = run(arguments).await;
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("unknown key `lisen`"), "{output:?}");
    }
    // The usual file is read where the server is started.
    let output = binary().arg("serve").current_dir(directory.path()).output().await.unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown key `lisen`"), "{output:?}");
    let missing = run(&["serve", "--config", "/nowhere/holdfast.toml"]).await;
    assert_eq!(missing.status.code(), Some(2));
}

#[tokio::test]
async fn what_serve_would_refuse_is_refused_by_the_check() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("holdfast.toml");
    let database = format!("database = \"{}\"\n", url(&directory.path().join("shop.db")));
    for (options, why) in [
        ("listen = \"0.0.0.0:0\"\nauth = \"off\"", "only on a loopback address"),
        ("payment_secrets = [\"hush\"]", "payment secret 1 is not PROVIDER=SECRET"),
        ("payment_secrets = [\"bank=whsec_\"]", "is empty"),
        ("tls_cert = \"/nowhere/cert.pem\"\ntls_key = \"/nowhere/key.pem\"", "/nowhere/cert.pem"),
        ("log = \"info,shop=loud\"", "the log's filter"),
        ("state_file = \"/nowhere/shop.state\"", "/nowhere"),
    ] {
        std::fs::write(&file, format!("{database}{options}\n")).unwrap();
        for command in [["config", "check"].as_slice(), &["serve"]] {
            let output = run(&[command, &["--config", file.to_str().unwrap()]].concat()).await;
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{options}: {told}");
            assert!(told.contains(why) && !told.contains("hush"), "{options}: {told}");
        }
    }
    assert!(!directory.path().join("shop.db").exists(), "nothing was opened");
}

#[tokio::test]
async fn the_service_manager_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut server = Server::start_with(Start {
        arguments: vec!["--auth".into(), "off".into()],
        environment: vec![("NOTIFY_SOCKET".into(), path.display().to_string())],
        ..Start::default()
    })
    .await;
    let heard = async |word: &str| {
        let mut bytes = [0; 512];
        loop {
            let length = socket.recv(&mut bytes).await.unwrap();
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if text.lines().any(|line| line == word) {
                return text;
            }
        }
    };
    let ready = heard("READY=1").await;
    assert!(ready.contains("STATUS=listening on 127.0.0.1:"), "{ready}");
    server.ask_to_stop();
    heard("STOPPING=1").await;
    assert!(server.wait().await.success());
}

#[tokio::test]
async fn completions_and_manual_pages_are_written() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]).await;
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && script.contains("holdfast") && script.contains("restore"),
            "{shell}"
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let output = run(&["man", directory.path().to_str().unwrap()]).await;
    assert!(output.status.success(), "{output:?}");
    for page in ["holdfast.1", "holdfast-serve.1", "holdfast-backup.1"] {
        assert!(directory.path().join(page).exists(), "{page}");
    }
    let output = run(&["man", "/nowhere"]).await;
    assert_eq!(output.status.code(), Some(2));
}
