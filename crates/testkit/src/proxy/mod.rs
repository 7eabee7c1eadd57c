//! A network that fails on request: a TCP proxy between a program and its server.

mod commits;
mod connection;
mod control;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, JoinSet};

use crate::port::Port;
use control::Control;

pub use control::Way;

/// Most connections at the same time; more are closed as soon as they come.
const CONNECTIONS_MAX: usize = 4_096;

/// A proxy on a port of its own. All its faults can be changed while connections are open. Dropping it closes
/// everything.
#[derive(Debug)]
pub struct FaultProxy {
    port: Port,
    shared: Arc<Shared>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    /// The port of 127.0.0.1 to which connections lead.
    server_port: AtomicU16,
    /// The port to which they led first: URLs name it.
    named_port: u16,
    /// Whether what passes is PostgreSQL's protocol.
    is_postgres: bool,
    control: Control,
    connections: Mutex<JoinSet<()>>,
}

impl FaultProxy {
    /// A proxy that passes bytes to the server at a port of 127.0.0.1.
    pub async fn start(server_port: u16) -> Result<Self> {
        Self::start_as(server_port, false).await
    }

    /// A proxy that understands PostgreSQL's protocol (without TLS), for [`FaultProxy::lose_commit_answers`].
    pub async fn postgres(server_port: u16) -> Result<Self> {
        Self::start_as(server_port, true).await
    }

    async fn start_as(server_port: u16, is_postgres: bool) -> Result<Self> {
        let shared = Shared {
            server_port: AtomicU16::new(server_port),
            named_port: server_port,
            is_postgres,
            control: Control::default(),
            connections: Mutex::default(),
        };
        let proxy = Self { port: Port::reserve()?, shared: Arc::new(shared), listening: Mutex::default() };
        proxy.accept().await?;
        Ok(proxy)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// A URL that names the server's port, led through the proxy.
    #[must_use]
    pub fn through(&self, url: &str) -> String {
        url.replacen(&format!(":{}", self.shared.named_port), &format!(":{}", self.port()), 1)
    }

    /// Leads connections from now on to the server at another port; open ones stay where they are.
    pub fn lead_to(&self, server_port: u16) {
        self.shared.server_port.store(server_port, Ordering::SeqCst);
    }

    /// Every byte takes this much longer on its way.
    pub fn delay(&self, way: Way, delay: Duration) {
        self.shared.control.change(|state| state.way_mut(way).delay = delay);
    }

    /// Nothing arrives in this direction, not even the end of a connection, until [`FaultProxy::pass`]; what is sent
    /// meanwhile waits, within the bounds of the buffers. One way held is a half-open connection.
    pub fn hold(&self, way: Way) {
        self.shared.control.change(|state| state.way_mut(way).is_held = true);
    }

    /// Ends a [`FaultProxy::hold`].
    pub fn pass(&self, way: Way) {
        self.shared.control.change(|state| state.way_mut(way).is_held = false);
    }

    /// Resets all connections; they are gone when this returns. New ones are taken as before.
    pub async fn cut(&self) {
        let mut connections = self.shared.connections.lock().await;
        self.shared.control.change(|state| state.cuts += 1);
        while connections.join_next().await.is_some() {}
    }

    /// Resets the connection that carries the `bytes`th byte from now in this direction, right after that byte.
    pub fn cut_after(&self, way: Way, bytes: u64) {
        self.shared.control.budget(way).set(bytes);
    }

    /// Refuses new connections: nobody listens on the port. Open ones live on.
    pub async fn refuse(&self) {
        if let Some(task) = self.listening.lock().await.take() {
            task.abort();
            // The listener is closed when the task has ended.
            let _ = task.await;
        }
    }

    /// Takes new connections again.
    pub async fn accept(&self) -> Result<()> {
        let mut listening = self.listening.lock().await;
        if listening.is_none() {
            let address = (Ipv4Addr::LOCALHOST, self.port.number);
            let listener = TcpListener::bind(address).await.context("the proxy's port")?;
            *listening = Some(tokio::spawn(accept_all(listener, Arc::clone(&self.shared))));
        }
        Ok(())
    }

    /// The next `count` COMMITs are made, but their answers are lost and their connections reset.
    pub fn lose_commit_answers(&self, count: u32) {
        self.shared.control.commits.arm(count);
    }

    /// Loses no further answers to COMMITs.
    pub fn keep_commit_answers(&self) {
        self.shared.control.commits.disarm();
    }

    /// Waits until no lost answer is owed any more; how many answers were lost since the start.
    pub async fn commit_answers_lost(&self) -> u32 {
        self.shared.control.commits.all_lost().await
    }

    /// How many connections are open.
    pub async fn connections(&self) -> usize {
        let mut connections = self.shared.connections.lock().await;
        while connections.try_join_next().is_some() {}
        connections.len()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        // The acceptor holds the rest; connections end with the set that they are in.
        if let Some(task) = self.listening.get_mut().take() {
            task.abort();
        }
        self.shared.control.change(|state| state.is_over = true);
    }
}

async fn accept_all(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Out of descriptors, most likely: the connections that end give some back.
            tokio::task::yield_now().await;
            continue;
        };
        let mut connections = shared.connections.lock().await;
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS_MAX {
            continue;
        }
        // Under the lock: a cut counts either before this connection or with it.
        let ends = shared.control.ends();
        connections.spawn(serve(client, Arc::clone(&shared), ends));
    }
}

async fn serve(client: TcpStream, shared: Arc<Shared>, ends: control::Ends) {
    let Ok(server) =
        TcpStream::connect((Ipv4Addr::LOCALHOST, shared.server_port.load(Ordering::SeqCst))).await
    else {
        // As the server would: the client sees its connection reset.
        let _ = client.set_zero_linger();
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    connection::run(client, server, shared.is_postgres, &shared.control, ends).await;
}
