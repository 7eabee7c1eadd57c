//! TLS towards the server, and the proof of who it is.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use holdfast_testkit::{Postgres, PostgresOptions};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use crate::support::{node, try_node};

/// A certificate for these names, in files that the server may read.
async fn certificate(folder: &Path, label: &str, name: &str) -> (PathBuf, PathBuf) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
    let (certificate, key) = (folder.join(format!("{label}.pem")), folder.join(format!("{label}.key")));
    std::fs::write(&certificate, cert.pem()).unwrap();
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    if rustix::process::geteuid().is_root() {
        let chown = tokio::process::Command::new("chown").arg("postgres:").arg(&key).status().await.unwrap();
        assert!(chown.success());
    }
    (certificate, key)
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[tokio::test]
async fn a_server_must_prove_its_name_where_that_is_asked() {
    let folder = folder();
    let (certificate_file, key) = certificate(folder.path(), "server", "127.0.0.1").await;
    let (other, _) = certificate(folder.path(), "other", "127.0.0.1").await;
    let settings = vec![
        "ssl = on".to_owned(),
        format!("ssl_cert_file = '{}'", certificate_file.display()),
        format!("ssl_key_file = '{}'", key.display()),
    ];
    let server =
        Postgres::start_with(PostgresOptions { fsync: false, settings, ..PostgresOptions::default() })
            .await
            .unwrap();
    let url = server.create_database("shop").await.unwrap();
    let encrypted = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a ON a.pid = s.pid \
                     WHERE s.ssl AND a.application_name = 'holdfast'";
    for (words, is_encrypted) in
        [("sslmode=disable", false), ("sslmode=prefer", true), ("sslmode=require", true)]
    {
        let store = node(&format!("{url}?{words}")).await;
        let count: u32 = server.sql("postgres", encrypted).await.unwrap().parse().unwrap();
        assert_eq!(count > 0, is_encrypted, "{words}: {count}");
        drop(store);
    }
    let verify = |root: &Path| format!("{url}?sslmode=verify-full&sslrootcert={}", root.display());
    drop(node(&verify(&certificate_file)).await);
    let error = try_node(&verify(&other)).await.err().expect("another certificate");
    assert!(error.to_string().contains("certificate"), "{error}");
    let by_name = verify(&certificate_file).replace("127.0.0.1", "localhost");
    let error = try_node(&by_name).await.err().expect("another name");
    assert!(error.to_string().contains("certificate"), "{error}");
    let error = try_node(&verify(&folder.path().join("none.pem"))).await.err().expect("no such file");
    assert!(error.to_string().contains("sslrootcert"), "{error}");
}
