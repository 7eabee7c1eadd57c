//! A node as the load sees it: an address, and connections that are kept.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;

use super::answer::Raw;
use super::request::Wanted;

/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Bytes both ways.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

type Io = TokioIo<Box<dyn Wire>>;

/// A connection that is kept. Whoever uses it drives both ends of it, so that an answer wakes one task, once.
struct Link {
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<Io, Full<Bytes>>,
}

/// One node.
pub(super) struct Node {
    host: HeaderValue,
    address: (String, u16),
    prefix: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    key: Option<HeaderValue>,
    room: Semaphore,
    idle: Mutex<Vec<Link>>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The request never left.
    NeverSent,
    /// It left, or may have.
    Lost,
}

/// What came of a request, and when it was sent.
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) came: Result<Raw, NoAnswer>,
}

impl Node {
    /// A node at a base address, with at most so many connections.
    pub(super) fn new(
        base: &str,
        key: Option<&str>,
        tls: Option<&Arc<rustls::ClientConfig>>,
        connections: usize,
    ) -> Result<Self> {
        let uri: Uri = base.parse().with_context(|| format!("{base:?} is no address"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            bail!("{base:?} is not an address such as http://127.0.0.1:8080");
        };
        let name = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let (port, tls) = match (scheme, tls) {
            ("http", _) => (80, None),
            ("https", Some(config)) => {
                let server =
                    ServerName::try_from(name.clone()).with_context(|| format!("{name:?} is no name"))?;
                (443, Some((TlsConnector::from(Arc::clone(config)), server)))
            }
            _ => bail!("{base:?} does not begin with http:// or https://"),
        };
        let key = key.map(|key| HeaderValue::try_from(format!("Bearer {key}"))).transpose();
        Ok(Self {
            host: HeaderValue::try_from(authority.as_str())?,
            address: (name, authority.port_u16().unwrap_or(port)),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            tls,
            key: key.context("the key holds characters that no key has")?,
            room: Semaphore::new(connections.max(1)),
            idle: Mutex::default(),
        })
    }

    /// Sends a request and waits for its answer. A future that is dropped hangs up.
    pub(super) async fn send(&self, wanted: &Wanted) -> Sent {
        // The semaphore is never closed; without room nothing leaves.
        let Ok(_room) = self.room.acquire().await else {
            return Sent { at: Instant::now(), came: Err(NoAnswer::NeverSent) };
        };
        let mut at = Instant::now();
        let Ok(mut request) = self.request(wanted) else {
            return Sent { at, came: Err(NoAnswer::NeverSent) };
        };
        // A kept connection may have been closed by the other side: then the request comes back unsent.
        while let Some(link) = self.kept() {
            match self.through(link, request).await {
                Ok(came) => return Sent { at, came },
                Err(back) => request = *back,
            }
            at = Instant::now();
        }
        let came = match tokio::time::timeout(CONNECT_MAX, self.connect()).await {
            Ok(Ok(link)) => {
                at = Instant::now();
                self.through(link, request).await.unwrap_or(Err(NoAnswer::NeverSent))
            }
            Ok(Err(_)) | Err(_) => Err(NoAnswer::NeverSent),
        };
        Sent { at, came }
    }

    fn request(&self, wanted: &Wanted) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let body = wanted.body.clone();
        let mut request = Request::builder()
            .method(if body.is_some() { Method::POST } else { Method::GET })
            .uri(format!("{}{}", self.prefix, wanted.path))
            .header(HOST, &self.host);
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        request.body(Full::new(body.unwrap_or_default()))
    }

    /// Sends through one connection; the request comes back if the connection was closed before.
    async fn through(
        &self,
        link: Link,
        request: Request<Full<Bytes>>,
    ) -> Result<Result<Raw, NoAnswer>, Box<Request<Full<Bytes>>>> {
        let Link { mut sender, mut connection } = link;
        let came = {
            let mut exchange = pin!(exchange(&mut sender, request));
            let came = tokio::select! {
                // Bytes that have come are handed over before anybody looks for them.
                biased;
                _ = poll_fn(|context| connection.poll_without_shutdown(context)) => None,
                came = &mut exchange => Some(came),
            };
            let Some(came) = came else {
                // The other side has closed it: who still waits for it is told so when it is gone.
                drop(connection);
                return exchange.await;
            };
            came
        };
        if matches!(came, Ok(Ok(_))) {
            self.idle().push(Link { sender, connection });
        }
        came
    }

    fn kept(&self) -> Option<Link> {
        let mut idle = self.idle();
        while let Some(link) = idle.pop() {
            if !link.sender.is_closed() {
                return Some(link);
            }
        }
        None
    }

    async fn connect(&self) -> Result<Link> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let wire: Box<dyn Wire> = match &self.tls {
            None => Box::new(stream),
            Some((connector, name)) => Box::new(connector.connect(name.clone(), stream).await?),
        };
        let (sender, connection) = handshake(TokioIo::new(wire)).await?;
        Ok(Link { sender, connection })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request and its whole answer.
async fn exchange(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<Result<Raw, NoAnswer>, Box<Request<Full<Bytes>>>> {
    // A kept connection must hear first that the last answer was read to its end, or that the other side has closed it.
    if sender.ready().await.is_err() {
        return Err(Box::new(request));
    }
    match sender.try_send_request(request).await {
        Ok(response) => Ok(whole(response).await),
        Err(mut error) => match error.take_message() {
            Some(request) => Err(Box::new(request)),
            None => Ok(Err(NoAnswer::Lost)),
        },
    }
}

async fn whole(response: Response<hyper::body::Incoming>) -> Result<Raw, NoAnswer> {
    let (head, body) = response.into_parts();
    let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let retry_after = text(RETRY_AFTER.as_str()).and_then(|seconds| seconds.trim().parse().ok());
    let replayed = text("idempotent-replayed") == Some("true");
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|_| NoAnswer::Lost)?;
    Ok(Raw { status: head.status.as_u16(), body: body.to_bytes(), retry_after, replayed })
}

/// Whom nodes behind `https://` may be vouched for by: those of a file in PEM form, else those that the system trusts.
pub(super) fn trust(ca_pem: Option<&[u8]>) -> Result<Arc<rustls::ClientConfig>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    let mut roots = rustls::RootCertStore::empty();
    match ca_pem {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                roots.add(certificate.context("the file of trusted certificates holds none in PEM form")?)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
