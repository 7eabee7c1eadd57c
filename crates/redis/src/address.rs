//! Where the servers of a cache are and how they are spoken to, as one URL.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// Ports if the URL names none.
const SERVER_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;
/// Most hosts that a URL may name.
const HOSTS_MAX: usize = 64;
/// Longest instance name: it stands in every key.
const INSTANCE_CHARS_MAX: usize = 32;

/// A server's place on the network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// How the servers stand to one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// One master, which is one of the hosts.
    Single,
    /// The hosts are Sentinels that know the master by this name.
    Sentinel { master: String },
    /// The hosts are some of a Cluster's; a bucket's keys lie in one slot.
    Cluster,
}

/// Who we are to a server.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// Where a cache is. Shown without its secrets.
#[derive(Clone)]
pub struct Address {
    pub(crate) form: Form,
    pub(crate) hosts: Vec<Node>,
    pub(crate) login: Login,
    /// For Sentinels, which have logins of their own.
    pub(crate) sentinel_login: Login,
    pub(crate) is_tls: bool,
    /// The roots that vouch for the servers' certificates; none: the machine's.
    pub(crate) roots: Option<PathBuf>,
    pub(crate) database: i64,
    /// What tells deployments apart that share a server.
    pub(crate) instance: String,
}

/// Why a text is no address. It does not repeat the text, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a Redis URL: {0}")]
pub struct InvalidAddress(&'static str);

impl Address {
    /// Reads one of
    ///
    /// - `redis://[USER:PASSWORD@]HOST[:PORT][,HOST…][/DATABASE]`: of several hosts, the one that is a master;
    /// - `redis+sentinel://[USER:PASSWORD@]SENTINEL[:PORT][,SENTINEL…]/MASTER`;
    /// - `redis+cluster://[USER:PASSWORD@]HOST[:PORT][,HOST…]`,
    ///
    /// each with `rediss` instead of `redis` for TLS, and `?instance=NAME`, `tls_roots=FILE`, `database=N`,
    /// `sentinel_user=…`, `sentinel_password=…`.
    pub fn parse(text: &str) -> Result<Self, InvalidAddress> {
        let (scheme, rest) =
            text.split_once("://").ok_or(InvalidAddress("it must begin with redis:// or rediss://"))?;
        let (base, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let is_tls = match base {
            "redis" => false,
            "rediss" => true,
            _ => return Err(InvalidAddress("it must begin with redis:// or rediss://")),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (servers, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = servers.rsplit_once('@').unwrap_or(("", servers));
        let mut address = Self {
            form: Form::Single,
            hosts: Vec::new(),
            login: read_login(login)?,
            sentinel_login: Login::default(),
            is_tls,
            roots: None,
            database: 0,
            instance: String::new(),
        };
        let port = if kind == "sentinel" { SENTINEL_PORT } else { SERVER_PORT };
        address.hosts = hosts.split(',').map(|host| read_host(host, port)).collect::<Result<_, _>>()?;
        if address.hosts.len() > HOSTS_MAX {
            return Err(InvalidAddress("it names too many hosts"));
        }
        match kind {
            "" if path.is_empty() => {}
            "" => address.database = read_database(path)?,
            "sentinel" if path.is_empty() => {
                return Err(InvalidAddress("a path must name the master that the Sentinels watch"));
            }
            "sentinel" => address.form = Form::Sentinel { master: decode(path)? },
            "cluster" if path.is_empty() => address.form = Form::Cluster,
            "cluster" => return Err(InvalidAddress("a Cluster has no numbered databases")),
            _ => return Err(InvalidAddress("after + only sentinel and cluster are known")),
        }
        address.read_query(query)?;
        Ok(address)
    }

    fn read_query(&mut self, query: &str) -> Result<(), InvalidAddress> {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value)?;
            let is_sentinel = matches!(self.form, Form::Sentinel { .. });
            match name {
                "instance" if is_instance(&value) => self.instance = value,
                "instance" => {
                    return Err(InvalidAddress("instance must be 1 to 32 letters, digits, '-', '_' or '.'"));
                }
                "tls_roots" if self.is_tls => self.roots = Some(PathBuf::from(value)),
                "tls_roots" => return Err(InvalidAddress("tls_roots needs rediss")),
                "database" if self.form != Form::Cluster => self.database = read_database(&value)?,
                "database" => return Err(InvalidAddress("a Cluster has no numbered databases")),
                "sentinel_user" if is_sentinel => self.sentinel_login.user = Some(value),
                "sentinel_password" if is_sentinel => self.sentinel_login.password = Some(value),
                _ => return Err(InvalidAddress("a parameter is not known")),
            }
        }
        Ok(())
    }
}

fn is_instance(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=INSTANCE_CHARS_MAX).contains(&text.len()) && text.chars().all(is_plain)
}

fn read_login(text: &str) -> Result<Login, InvalidAddress> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let given = |text: &str| if text.is_empty() { Ok(None) } else { decode(text).map(Some) };
    let login = Login { user: given(user)?, password: given(password)? };
    if login.user.is_some() && login.password.is_none() {
        return Err(InvalidAddress("a user needs a password: USER:PASSWORD@, or :PASSWORD@ without a user"));
    }
    Ok(login)
}

fn read_host(text: &str, default_port: u16) -> Result<Node, InvalidAddress> {
    let bad = InvalidAddress("a host or port cannot be understood");
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(|| bad.clone())?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(bad.clone())?) };
            (host, port)
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if host.is_empty() || !host.chars().all(is_host) {
        return Err(bad);
    }
    let port = port.map_or(Ok(default_port), str::parse).ok().filter(|port| *port > 0).ok_or(bad)?;
    Ok(Node { host: host.to_owned(), port })
}

fn read_database(text: &str) -> Result<i64, InvalidAddress> {
    let number = text.parse().ok().filter(|number: &i64| (0..=i64::from(u16::MAX)).contains(number));
    number.ok_or(InvalidAddress("the database must be a number from 0"))
}

fn decode(text: &str) -> Result<String, InvalidAddress> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(String::from).map_err(|_| InvalidAddress("a part is not well percent-encoded"))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_tls { "rediss" } else { "redis" })?;
        f.write_str(match self.form {
            Form::Single => "://",
            Form::Sentinel { .. } => "+sentinel://",
            Form::Cluster => "+cluster://",
        })?;
        if let Some(user) = &self.login.user {
            write!(f, "{user}@")?;
        }
        for (at, node) in self.hosts.iter().enumerate() {
            write!(f, "{}{node}", if at == 0 { "" } else { "," })?;
        }
        if let Form::Sentinel { master } = &self.form {
            write!(f, "/{master}")?;
        }
        Ok(())
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
    fn each_form_is_read_and_shown_without_its_secrets() {
        for (text, shown) in [
            ("redis://localhost", "redis://localhost:6379"),
            ("rediss://shop:s3cret%40@a:7000,[::1]:7001/3?instance=eu-1", "rediss://shop@a:7000,[::1]:7001"),
            ("redis://:s3cret@a", "redis://a:6379"),
            (
                "redis+sentinel://u:s3cret@s1,s2:9/main?sentinel_password=s3cret&database=2",
                "redis+sentinel://u@s1:26379,s2:9/main",
            ),
            ("rediss+cluster://a,b?tls_roots=%2Fca.pem", "rediss+cluster://a:6379,b:6379"),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), shown);
            assert!(!format!("{address:?}").contains("s3cret"));
        }
        let address = Address::parse("rediss://shop:s3cret%40@a:7000,[::1]:7001/3?instance=eu-1").unwrap();
        assert_eq!(address.login.password.as_deref(), Some("s3cret@"));
        assert_eq!((address.database, address.instance.as_str()), (3, "eu-1"));
    }

    #[test]
    fn what_is_wrong_is_told_without_the_text() {
        for (text, why) in [
            ("s3cret", "must begin"),
            ("http://:s3cret@a", "must begin"),
            ("redis+s3cret://a", "only sentinel and cluster"),
            ("redis://s3cret@a", "USER:PASSWORD@"),
            ("redis://:s3cret@a:s3cret", "host or port"),
            ("redis://:s3cret@", "host or port"),
            ("redis://:s3cret@a/x", "must be a number"),
            ("redis://:s3cret@a?s3cret=s3cret", "not known"),
            ("redis://:s3cret@a?instance=s3cret%20", "instance must be"),
            ("redis://:s3cret@a?tls_roots=s3cret", "needs rediss"),
            ("redis://:%ffs3cret@a", "percent-encoded"),
            ("redis+sentinel://:s3cret@a", "name the master"),
            ("redis+cluster://:s3cret@a/1", "no numbered"),
            ("redis://:s3cret@a?sentinel_user=s3cret", "not known"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("s3cret"), "{text}: {error}");
        }
    }
}
