//! A private PostgreSQL.

mod database;
mod faults;
mod pgbouncer;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::{as_server_user, find, give_to_server_user, output};
use crate::folder::Folder;
use crate::port::Port;
use crate::scratch;

pub use database::Database;
pub use pgbouncer::{PgBouncer, PoolMode};

/// Environment variable that names the folder of PostgreSQL's programs.
const BIN_VARIABLE: &str = "HOLDFAST_TEST_PG_BIN";
/// Who owns the databases of tests: an ordinary user, as in production.
const OWNER: &str = "holdfast";
/// The user of the test kit itself.
const SUPERUSER: &str = "postgres";
/// Seconds that `pg_ctl` waits for a server to come up or go.
const WAIT_SECONDS: &str = "60";

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Whether commits are flushed. On, because durability is what is tested; off where it proves nothing.
    pub fsync: bool,
    /// Further lines of `postgresql.conf`.
    pub settings: Vec<String>,
    /// What it is started with in its environment.
    pub environment: Vec<(String, String)>,
    /// Where its data lies, if not in its own folder: on a disk that can be full.
    pub disk: Option<PathBuf>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { fsync: true, settings: Vec::new(), environment: Vec::new(), disk: None }
    }
}

/// A PostgreSQL server of the test's own on 127.0.0.1. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct Postgres {
    folder: Folder,
    bin: PathBuf,
    port: Port,
    environment: Vec<(String, String)>,
    data: PathBuf,
}

impl Postgres {
    /// A new, empty, durable server.
    pub async fn start() -> Result<Self> {
        Self::start_with(PostgresOptions::default()).await
    }

    /// A new, empty server.
    pub async fn start_with(options: PostgresOptions) -> Result<Self> {
        Self::start_in(Folder::new("postgres")?, options).await
    }

    async fn start_in(folder: Folder, options: PostgresOptions) -> Result<Self> {
        give_to_server_user(folder.path()).await?;
        let PostgresOptions { fsync, settings: more, environment, disk } = options;
        let data = disk.unwrap_or_else(|| folder.path().to_path_buf()).join("data");
        let server = Self { bin: bin()?, port: Port::reserve()?, folder, environment, data };
        server.copy_template().await?;
        let fsync = if fsync { "on" } else { "off" };
        let mut settings = vec![format!("port = {}", server.port.number), format!("fsync = {fsync}")];
        settings.extend(more);
        server.configure(&settings)?;
        server.restart().await?;
        Ok(server)
    }

    /// The URL of a database, for its owner, who is an ordinary user.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        url(self.port.number, database)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// Creates an empty database and returns its URL.
    pub async fn create_database(&self, name: &str) -> Result<String> {
        create_database(self.port(), name).await?;
        Ok(self.url(name))
    }

    /// Runs SQL as the superuser; the answer's rows as lines, columns parted by `|`.
    pub async fn sql(&self, database: &str, sql: &str) -> Result<String> {
        psql(&admin_url(self.port(), database), sql).await
    }

    fn pg_ctl(&self, action: &str) -> tokio::process::Command {
        let mut command = as_server_user(self.bin.join("pg_ctl"), self.folder.path());
        command.args([action, "-s", "-w", "-t", WAIT_SECONDS, "-D"]).arg(&self.data);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The data of a server as `initdb` makes it. It is made once a run and copied, which is quicker.
    async fn copy_template(&self) -> Result<()> {
        let template = scratch::of_run()?.join("template");
        let lock = lock(&template.with_extension("lock")).await?;
        if !template.join("data/done").exists() {
            fs::create_dir_all(&template)?;
            give_to_server_user(&template).await?;
            make_template(&self.bin, &template).await?;
        }
        drop(lock);
        let mut copy = as_server_user("cp", self.folder.path());
        copy.arg("-a").arg(template.join("data")).arg(&self.data);
        output(&mut copy).await?;
        Ok(())
    }

    fn configure(&self, settings: &[String]) -> Result<()> {
        let path = self.data.join("postgresql.conf");
        let common = format!(
            "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 200\n\
             timezone = 'UTC'\nlog_line_prefix = '%m [%p] %a '\nlog_checkpoints = off\n{}\n",
            settings.join("\n")
        );
        let mut text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        text.push_str(&common);
        fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

/// Runs SQL at a URL with `psql`; the answer's rows as lines, columns parted by `|`.
pub async fn psql(url: &str, sql: &str) -> Result<String> {
    output(&mut psql_command(url, sql)?).await
}

fn psql_command(url: &str, sql: &str) -> Result<tokio::process::Command> {
    let mut command = as_server_user(bin()?.join("psql"), &std::env::temp_dir());
    command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]);
    Ok(command)
}

async fn create_database(port: u16, name: &str) -> Result<()> {
    psql(&admin_url(port, SUPERUSER), &format!("CREATE DATABASE \"{name}\" OWNER {OWNER}")).await?;
    Ok(())
}

fn admin_url(port: u16, database: &str) -> String {
    format!("postgres://{SUPERUSER}@127.0.0.1:{port}/{database}")
}

fn url(port: u16, database: &str) -> String {
    format!("postgres://{OWNER}@127.0.0.1:{port}/{database}")
}

/// The newest PostgreSQL of this machine.
fn bin() -> Result<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin")))
        })
        .collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    let folders: Vec<PathBuf> = versions.into_iter().map(|(_, bin)| bin).collect();
    let initdb = find("initdb", BIN_VARIABLE, &folders, "postgresql")?;
    Ok(initdb.parent().map(Path::to_path_buf).unwrap_or_default())
}

async fn make_template(bin: &Path, template: &Path) -> Result<()> {
    let data = template.join("data");
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    let mut initdb = as_server_user(bin.join("initdb"), template);
    initdb
        .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "-U", SUPERUSER, "-D"])
        .arg(&data);
    output(&mut initdb).await?;
    // The owner is created by a server in single-user mode, which needs no port.
    let mut single = as_server_user("sh", template);
    single.arg("-c").arg(r#"echo "CREATE ROLE $2 LOGIN" | exec "$0" --single -j -F -D "$1" postgres"#);
    single.arg(bin.join("postgres")).arg(&data).arg(OWNER);
    output(&mut single).await?;
    let mut done = as_server_user("touch", template);
    done.arg(data.join("done"));
    output(&mut done).await?;
    Ok(())
}

/// Takes an exclusive lock among the processes of a run, without holding up this process's other tasks.
async fn lock(path: &Path) -> Result<fs::File> {
    let path = path.to_path_buf();
    tokio::task::spawn_blocking(move || {
        let file = fs::File::create(&path).with_context(|| path.display().to_string())?;
        file.lock().with_context(|| path.display().to_string())?;
        Ok(file)
    })
    .await?
}
