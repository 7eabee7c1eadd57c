//! Where an authority is and how it is spoken to, as one URL: PostgreSQL's own form, with a few words more.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// How long sent bytes may stay unacknowledged before the connection is given up.
const USER_TIMEOUT: Duration = Duration::from_secs(5);
/// After how long a silent connection is probed, how often, and how many probes may be lost.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);
/// Connections if the URL names no number.
const CONNECTIONS: usize = 16;
/// Most connections that one node may be told to have.
const CONNECTIONS_MAX: usize = 1_000;

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statements {
    /// Prepared once a connection: for a direct connection, and for poolers that know prepared statements.
    Named,
    /// Parsed anew each time, with the session's settings in each transaction: for poolers that give a transaction
    /// whichever connection is free and know no prepared statements, such as PgBouncer before 1.21.
    Unnamed,
}

/// How a server must prove who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It need not: encryption only keeps out who merely listens.
    Anybody,
    /// By a certificate for its name that these roots vouch for.
    Roots(String),
    /// By a certificate for its name that the machine's roots vouch for.
    System,
}

/// Where an authority is. Shown without its secrets.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Config,
    pub(crate) trust: Trust,
    /// How statements are sent.
    pub statements: Statements,
    /// Most connections of this node.
    pub connections: usize,
}

/// Why a text is no address. It does not repeat the text, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a PostgreSQL URL: {0}")]
pub struct InvalidAddress(String);

impl Address {
    /// Reads `postgres://USER:PASSWORD@HOST[:PORT][,HOST…]/DATABASE[?…]`. Beyond what every PostgreSQL driver
    /// understands: `sslmode=verify-full`, `sslrootcert=FILE` or `system`, `statements=named` or `unnamed`, and
    /// `connections=N`.
    pub fn parse(text: &str) -> Result<Self, InvalidAddress> {
        let bad = |why: &str| InvalidAddress(why.to_owned());
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(bad("it must begin with postgres:// or postgresql://"));
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let mut passed = Vec::new();
        let (mut statements, mut connections) = (Statements::Named, CONNECTIONS);
        let (mut root, mut verify) = (None, false);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("statements", "named") => statements = Statements::Named,
                ("statements", "unnamed") => statements = Statements::Unnamed,
                ("statements", _) => return Err(bad("statements must be named or unnamed")),
                ("connections", number) => {
                    connections =
                        number.parse().ok().filter(|n| (2..=CONNECTIONS_MAX).contains(n)).ok_or_else(
                            || InvalidAddress(format!("connections must be 2 to {CONNECTIONS_MAX}")),
                        )?;
                }
                ("sslrootcert", file) => root = Some(decode(file)?),
                ("sslmode", "verify-full") => {
                    verify = true;
                    passed.push("sslmode=require");
                }
                ("sslmode", "verify-ca") => {
                    return Err(bad("sslmode=verify-ca is not known, use verify-full"));
                }
                _ => passed.push(pair),
            }
        }
        let rest = if passed.is_empty() { String::new() } else { format!("?{}", passed.join("&")) };
        // The driver's message may repeat what it does not understand.
        let mut config = Config::from_str(&format!("{base}{rest}"))
            .map_err(|_| bad("its host, port, or a parameter cannot be understood"))?;
        let trust = match root.as_deref() {
            Some("system") => Trust::System,
            Some(file) => Trust::Roots(file.to_owned()),
            None if verify => {
                return Err(bad("sslmode=verify-full needs sslrootcert=FILE or sslrootcert=system"));
            }
            None => Trust::Anybody,
        };
        if config.get_hosts().is_empty() {
            return Err(bad("it names no host"));
        }
        if trust != Trust::Anybody && config.get_ssl_mode() != SslMode::Require {
            return Err(bad("sslrootcert needs sslmode=require or verify-full"));
        }
        set_defaults(&mut config);
        Ok(Self { config, trust, statements, connections })
    }

    /// Whether it names several servers, of which one can be written to.
    pub fn is_replicated(&self) -> bool {
        self.config.get_hosts().len() > 1
    }

    /// The database's name.
    pub fn database(&self) -> &str {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or("postgres")
    }
}

fn set_defaults(config: &mut Config) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(USER_TIMEOUT);
    }
    if config.get_keepalives_interval().is_none() {
        let (idle, interval, retries) = KEEPALIVE;
        config.keepalives_idle(idle).keepalives_interval(interval).keepalives_retries(retries);
    }
    if config.get_application_name().is_none() {
        config.application_name("holdfast");
    }
    // A standby answers too, and nothing of it may be believed.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, InvalidAddress> {
    let bad = || InvalidAddress("a parameter is not well percent-encoded".to_owned());
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.bytes());
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            let digit = rest.next().and_then(|byte| char::from(byte).to_digit(16));
            digit.and_then(|digit| u8::try_from(digit).ok()).ok_or_else(bad)
        };
        bytes.push(digit()? * 16 + digit()?);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        for (at, host) in self.config.get_hosts().iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}")?,
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
            }
            let ports = self.config.get_ports();
            if let Some(port) = ports.get(at).or(ports.first()) {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", self.database())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_and_shown_without_its_password() {
        let text = "postgresql://shop:s3cret@db1:5433,db2:5434/sale?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem\
                    &statements=unnamed&connections=9&application_name=node-1";
        let address = Address::parse(text).unwrap();
        assert_eq!(address.to_string(), "postgres://shop@db1:5433,db2:5434/sale");
        assert!(!format!("{address:?}").contains("s3cret"));
        assert_eq!((address.statements, address.connections), (Statements::Unnamed, 9));
        assert_eq!(address.trust, Trust::Roots("/etc/ca.pem".into()));
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(address.config.get_application_name(), Some("node-1"));
        assert!(address.is_replicated());
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn what_is_wrong_is_told_without_the_text() {
        for (text, why) in [
            ("mysql://a:s3cret@b/c", "must begin"),
            ("postgres://a:s3cret@b:s3cret/c", "cannot be understood"),
            ("postgres://a:s3cret@b/c?s3cret=s3cret", "cannot be understood"),
            ("postgres://a:s3cret@b/c?connections=1", "connections must be"),
            ("postgres://a:s3cret@b/c?statements=s3cret", "named or unnamed"),
            ("postgres://a:s3cret@b/c?sslmode=verify-full", "needs sslrootcert"),
            ("postgres://a:s3cret@b/c?sslmode=verify-ca", "use verify-full"),
            ("postgres://a:s3cret@b/c?sslrootcert=%2", "percent-encoded"),
            ("postgres://a:s3cret@b/c?sslrootcert=x", "needs sslmode"),
            ("postgres:///c", "names no host"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("s3cret"), "{text}: {error}");
        }
    }
}
