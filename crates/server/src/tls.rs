//! TLS: the certificate, its replacement while the server runs, and the handshake. TLS 1.2 and 1.3 by
//! rustls with the provider ring; HTTP/1.1 only.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum_server::accept::Accept;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use holdfast_wire::Code;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::problem::Problem;
use crate::serve::{Bounded, Counted};
use crate::unparsed::{Outspoken, whole_answer};

/// Longest certificate chain or key that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The first byte of every TLS connection: a handshake record.
const HANDSHAKE: u8 = 0x16;
/// How long, and how much, of a request in the clear is still read after its refusal, so that its client
/// sees the answer rather than a reset connection.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: u64 = 64 * 1_024;

/// Why a certificate cannot be used. The message names files, never what is in them.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The certificate file holds no certificate in PEM form.
    #[error("{}: no certificate in PEM form", .0.display())]
    Certificate(PathBuf),
    /// The key file holds no private key in PEM form.
    #[error("{}: no private key in PEM form", .0.display())]
    Key(PathBuf),
    /// The two do not go together, or cannot be used.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// The server's certificate. It is replaced in place: connections that are open keep the one they have.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: RustlsConfig,
    /// The files as they were last looked at, good or bad, so that a bad pair is complained about once.
    seen: Mutex<[u8; 32]>,
}

struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Pair {
    fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update((self.certificate.len() as u64).to_be_bytes());
        hash.update(&self.certificate);
        hash.update(&self.key);
        hash.finalize().into()
    }
}

impl Tls {
    /// Reads a certificate chain and its key, both in PEM form.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let pair = Pair { certificate: read(certificate)?, key: read(key)? };
        let config = server_config(&pair, certificate, key)?;
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            config: RustlsConfig::from_config(config),
            seen: Mutex::new(pair.hash()),
        })
    }

    /// Takes the certificate in the files if they have changed since they were last looked at, or if somebody
    /// asks; whether it did. What cannot be used leaves the certificate as it is.
    pub fn reload(&self, is_asked: bool) -> Result<bool, TlsError> {
        let pair = Pair { certificate: read(&self.certificate)?, key: read(&self.key)? };
        let hash = pair.hash();
        let before = std::mem::replace(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner), hash);
        if before == hash && !is_asked {
            return Ok(false);
        }
        self.config.reload_from_config(server_config(&pair, &self.certificate, &self.key)?);
        Ok(true)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let read = || {
        if std::fs::metadata(path)?.len() > FILE_BYTES_MAX {
            return Err(io::Error::other("the file is too long"));
        }
        std::fs::read(path)
    };
    read().map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

fn server_config(pair: &Pair, certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pair.certificate).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| TlsError::Certificate(certificate.to_owned()))?;
    let key = PrivateKeyDer::from_pem_slice(&pair.key).map_err(|_| TlsError::Key(key.to_owned()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Accepts TLS connections, a bounded number of them; those in their handshake count, too.
#[derive(Debug, Clone)]
pub(crate) struct Secure {
    bounded: Bounded,
    acceptor: RustlsAcceptor,
    handshake_timeout: Duration,
}

impl Secure {
    pub(crate) fn new(bounded: Bounded, tls: &Tls, handshake_timeout: Duration) -> Self {
        let acceptor = RustlsAcceptor::new(tls.config.clone()).handshake_timeout(handshake_timeout);
        Self { bounded, acceptor, handshake_timeout }
    }
}

type Streamed<S> = <RustlsAcceptor as Accept<TcpStream, S>>::Stream;
type Served<S> = <RustlsAcceptor as Accept<TcpStream, S>>::Service;
type Accepted<S> = io::Result<(Outspoken<Streamed<S>>, Counted<Served<S>>)>;

impl<S: Send + 'static> Accept<TcpStream, S> for Secure {
    type Stream = Outspoken<Streamed<S>>;
    type Service = Counted<Served<S>>;
    type Future = Pin<Box<dyn Future<Output = Accepted<S>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let permit = this.bounded.permit(&stream)?;
            let mut first = [0];
            let peeked = timeout(this.handshake_timeout, stream.peek(&mut first)).await;
            if peeked.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? > 0 && first != [HANDSHAKE] {
                refuse_plain(stream).await;
                return Err(io::Error::other("a request in the clear on the port of TLS"));
            }
            let (stream, service) = this.acceptor.accept(stream, service).await?;
            Ok((Outspoken::new(stream, this.bounded.write_stall()), Counted::new(service, permit)))
        })
    }
}

/// Says what is wrong in the only language that this client understands.
async fn refuse_plain(mut stream: TcpStream) {
    let problem = Problem::new(Code::InvalidValue, "this port speaks TLS only: ask with https://");
    let answer = async move {
        if let Some(bytes) = whole_answer(&problem) {
            stream.write_all(&bytes).await?;
        }
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(LINGER_BYTES_MAX), &mut tokio::io::sink()).await
    };
    // Whether the client hears it is its own affair.
    let _ = timeout(LINGER, answer).await;
}
