//! Start and drain: connections, their timeouts and their number.

use std::future::{Future, Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum_server::accept::Accept;
use axum_server::{Handle, Server};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

use crate::config::Limits;

/// Serves until `shutdown` comes; then takes no more connections and lets requests finish, within the
/// drain's deadline. HTTP/1.1 only.
pub async fn serve(
    listener: std::net::TcpListener,
    router: Router,
    limits: &Limits,
    shutdown: impl Future,
) -> io::Result<()> {
    let handle: Handle<SocketAddr> = Handle::new();
    let mut server = axum_server::from_tcp(listener)?.http1_only();
    server.http_builder().http1().header_read_timeout(limits.header_read_timeout);
    let server: Server<SocketAddr, Bounded> = server
        .first_request_timeout(limits.first_request_timeout)
        .handle(handle.clone())
        .accept_error_handler(|_, error| tracing::warn!(%error, "a connection was not accepted"))
        .acceptor(Bounded { connections: Arc::new(Semaphore::new(limits.connections_max)) });
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
struct Bounded {
    connections: Arc<Semaphore>,
}

impl<S> Accept<TcpStream, S> for Bounded {
    type Stream = TcpStream;
    type Service = Counted<S>;
    type Future = Ready<io::Result<(TcpStream, Counted<S>)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        ready(self.admit(stream, service))
    }
}

impl Bounded {
    fn admit<S>(&self, stream: TcpStream, service: S) -> io::Result<(TcpStream, Counted<S>)> {
        let permit = Arc::clone(&self.connections).try_acquire_owned();
        let permit = permit.map_err(|_| io::Error::other("too many connections"))?;
        stream.set_nodelay(true)?;
        Ok((stream, Counted { service, permit: Arc::new(permit) }))
    }
}

/// A connection's service. The connection counts as long as its service lives.
#[derive(Debug, Clone)]
struct Counted<S> {
    service: S,
    #[expect(dead_code, reason = "held, not read")]
    permit: Arc<OwnedSemaphorePermit>,
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
