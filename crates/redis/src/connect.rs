//! One connection to one server.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    PushInfo, PushKind, RedisConnectionInfo, TlsCertificates, Value,
};

use crate::address::{Address, Login, Node};
use crate::fault;
use crate::replies;
use crate::server::Info;

/// How long sent bytes may stay unacknowledged before the system gives a connection up.
const USER_TIMEOUT: Duration = Duration::from_secs(5);

/// What every connection is made with.
#[derive(Debug)]
pub(crate) struct Connector {
    address: Address,
    /// The roots' certificates, if the address names some.
    roots: Option<Vec<u8>>,
    /// How long a connection may take to be made and to say who it leads to.
    pub(crate) timeout: Duration,
    /// Calls that a connection takes before it lets a sender wait.
    pub(crate) buffer: usize,
}

/// A connection to a master, and which one.
#[derive(Debug, Clone)]
pub(crate) struct Master {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) node: Node,
    pub(crate) identity: Arc<str>,
}

impl Connector {
    pub(crate) fn new(address: Address, timeout: Duration, buffer: usize) -> std::io::Result<Self> {
        let roots = address.roots.as_ref().map(std::fs::read).transpose()?;
        Ok(Self { address, roots, timeout, buffer })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Connects to a server that must be a master. `when_ended` is called as soon as the connection ends.
    pub(crate) async fn master(
        &self,
        node: &Node,
        when_ended: impl Fn() + Send + Sync + 'static,
    ) -> Result<Master, Arc<str>> {
        let config = self.config().set_push_sender(move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                when_ended();
            }
            Ok::<(), ()>(())
        });
        let info = self.info(node, &self.address.login, self.address.database, ProtocolVersion::RESP3)?;
        self.within(node, async {
            let mut connection = self.open(info, &config).await?;
            let identity = identity_of(&mut connection).await?;
            Ok(Master { connection, node: node.clone(), identity })
        })
        .await
    }

    /// Connects to a master for reads that wait.
    pub(crate) async fn reader(&self, node: &Node) -> Result<Master, Arc<str>> {
        let info = self.info(node, &self.address.login, self.address.database, ProtocolVersion::RESP2)?;
        self.within(node, async {
            let mut connection = self.open(info, &self.config()).await?;
            let identity = identity_of(&mut connection).await?;
            Ok(Master { connection, node: node.clone(), identity })
        })
        .await
    }

    /// Connects to whatever server of a Cluster is there.
    pub(crate) async fn any(&self, node: &Node) -> Result<MultiplexedConnection, Arc<str>> {
        self.plain(node, &self.address.login).await
    }

    /// Connects to a Sentinel, which has no numbered databases either.
    pub(crate) async fn sentinel(&self, node: &Node) -> Result<MultiplexedConnection, Arc<str>> {
        self.plain(node, &self.address.sentinel_login).await
    }

    async fn plain(&self, node: &Node, login: &Login) -> Result<MultiplexedConnection, Arc<str>> {
        let info = self.info(node, login, 0, ProtocolVersion::RESP2)?;
        self.within(node, self.open(info, &self.config())).await
    }

    /// Bounds the making of a connection, and says to which server it was.
    async fn within<T>(
        &self,
        node: &Node,
        making: impl Future<Output = Result<T, Arc<str>>>,
    ) -> Result<T, Arc<str>> {
        match tokio::time::timeout(self.timeout, making).await {
            Ok(made) => made.map_err(|why| format!("{node}: {why}").into()),
            Err(_) => Err(format!("{node}: no connection within {:?}", self.timeout).into()),
        }
    }

    async fn open(
        &self,
        info: ConnectionInfo,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, Arc<str>> {
        let roots = self.roots.clone();
        let client = match roots {
            Some(roots) if self.address.is_tls => {
                Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: Some(roots) })
            }
            _ => Client::open(info),
        };
        let client = client.map_err(|error| fault::of_connecting(&error))?;
        let connecting = client.get_multiplexed_async_connection_with_config(config);
        connecting.await.map_err(|error| fault::of_connecting(&error))
    }

    /// Deadlines are the callers': each call has its own.
    fn config(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(self.buffer)
    }

    fn info(
        &self,
        node: &Node,
        login: &Login,
        database: i64,
        protocol: ProtocolVersion,
    ) -> Result<ConnectionInfo, Arc<str>> {
        let (host, port) = (node.host.clone(), node.port);
        let address = if self.address.is_tls {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        };
        let us = RedisConnectionInfo::default().set_protocol(protocol).set_db(database);
        let mut us = us.set_skip_set_lib_name();
        if let Some(user) = &login.user {
            us = us.set_username(user);
        }
        if let Some(password) = &login.password {
            us = us.set_password(password);
        }
        let tcp = TcpSettings::default().set_nodelay(true).set_user_timeout(USER_TIMEOUT);
        let info = address.into_connection_info().map_err(|error| fault::of_connecting(&error))?;
        Ok(info.set_redis_settings(us).set_tcp_settings(tcp))
    }
}

/// Which server a connection leads to, which must be a master.
async fn identity_of(connection: &mut MultiplexedConnection) -> Result<Arc<str>, Arc<str>> {
    let answer: Result<Value, _> = redis::cmd("INFO").query_async(connection).await;
    let answer = answer.map_err(|error| fault::of_connecting(&error))?;
    let info = Info::read(replies::text(&answer).ok_or("its INFO cannot be read")?);
    if !info.is_master() {
        return Err("it is no master, or still reads its files".into());
    }
    info.identity().ok_or_else(|| "it does not say who it is".into())
}
