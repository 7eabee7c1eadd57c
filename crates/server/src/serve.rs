//! Start and drain: connections, their timeouts and their number.

use std::future::{Future, Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum_server::accept::Accept;
use axum_server::service::SendService;
use axum_server::{Handle, Server};
use holdfast_metrics::{Held, NodeMetrics};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

use crate::config::Limits;
use crate::tls::{Secure, Tls};
use crate::unparsed::Outspoken;

/// From how long on a request's head is refused; one that comes at once may be up to twice as long. Also how
/// much of a connection is buffered, so that many connections cannot take much memory.
const HEAD_BYTES_MAX: usize = 32 * 1_024;

/// Serves until `shutdown` comes; then takes no more connections and lets requests finish, within the
/// drain's deadline. HTTP/1.1 only.
pub async fn serve(
    listener: std::net::TcpListener,
    router: Router,
    limits: &Limits,
    metrics: &Arc<NodeMetrics>,
    shutdown: impl Future,
) -> io::Result<()> {
    run(listener, router, limits, shutdown, Bounded::new(limits, metrics)).await
}

/// The same over TLS.
pub async fn serve_tls(
    listener: std::net::TcpListener,
    router: Router,
    limits: &Limits,
    metrics: &Arc<NodeMetrics>,
    tls: &Tls,
    shutdown: impl Future,
) -> io::Result<()> {
    let secure = Secure::new(Bounded::new(limits, metrics), tls, limits.tls_handshake_timeout);
    run(listener, router, limits, shutdown, secure).await
}

async fn run<A>(
    listener: std::net::TcpListener,
    router: Router,
    limits: &Limits,
    shutdown: impl Future,
    acceptor: A,
) -> io::Result<()>
where
    A: Accept<TcpStream, Router> + Clone + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Unpin + Send,
    A::Service: SendService<Request<Incoming>> + Send,
    A::Future: Send,
{
    let handle: Handle<SocketAddr> = Handle::new();
    let mut server = axum_server::from_tcp(listener)?.http1_only();
    let mut builder = server.http_builder().http1();
    builder.header_read_timeout(limits.header_read_timeout).max_buf_size(HEAD_BYTES_MAX);
    let server: Server<SocketAddr, A> = server
        .first_request_timeout(limits.first_request_timeout)
        .handle(handle.clone())
        .accept_error_handler(|_, error| tracing::warn!(%error, "a connection was not accepted"))
        .acceptor(acceptor);
    let serving = server.serve(router.into_make_service());
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => return served,
        _ = shutdown => handle.graceful_shutdown(Some(limits.drain_timeout)),
    }
    serving.await
}

/// Accepts a bounded number of connections. One too many is closed at once, which costs less than
/// letting it wait.
#[derive(Debug, Clone)]
pub(crate) struct Bounded {
    connections: Arc<Semaphore>,
    write_stall: Duration,
    metrics: Arc<NodeMetrics>,
}

/// Leave for one connection. It counts until this is gone.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    _counted: Held,
}

impl<S> Accept<TcpStream, S> for Bounded {
    type Stream = Outspoken<TcpStream>;
    type Service = Counted<S>;
    type Future = Ready<io::Result<(Self::Stream, Counted<S>)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        ready(self.admit(stream, service))
    }
}

impl Bounded {
    fn new(limits: &Limits, metrics: &Arc<NodeMetrics>) -> Self {
        Self {
            connections: Arc::new(Semaphore::new(limits.connections_max)),
            write_stall: limits.write_stall_timeout,
            metrics: Arc::clone(metrics),
        }
    }

    fn admit<S>(&self, stream: TcpStream, service: S) -> io::Result<(Outspoken<TcpStream>, Counted<S>)> {
        let permit = self.permit(&stream)?;
        Ok((Outspoken::new(stream, self.write_stall), Counted::new(service, permit)))
    }

    /// How long a client may take nothing.
    pub(crate) const fn write_stall(&self) -> Duration {
        self.write_stall
    }

    /// Leave for one more connection.
    pub(crate) fn permit(&self, stream: &TcpStream) -> io::Result<ConnectionPermit> {
        let permit = Arc::clone(&self.connections).try_acquire_owned().map_err(|_| {
            self.metrics.connections_refused.inc();
            io::Error::other("too many connections")
        })?;
        stream.set_nodelay(true)?;
        Ok(ConnectionPermit { _permit: permit, _counted: self.metrics.connections.hold() })
    }
}

/// A connection's service. The connection counts as long as its service lives.
#[derive(Debug, Clone)]
pub(crate) struct Counted<S> {
    service: S,
    #[expect(dead_code, reason = "held, not read")]
    permit: Arc<ConnectionPermit>,
}

impl<S> Counted<S> {
    pub(crate) fn new(service: S, permit: ConnectionPermit) -> Self {
        Self { service, permit: Arc::new(permit) }
    }
}

impl<S: Service<R>, R> Service<R> for Counted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        self.service.call(request)
    }
}
