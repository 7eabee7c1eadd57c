//! TLS towards the server.

use std::sync::Arc;

use holdfast_store::Error;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::Trust;

/// What makes TLS connections; whether one is wanted the address says.
pub(crate) fn connector(trust: &Trust) -> Result<MakeRustlsConnect, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Unavailable(error.to_string()))?;
    let config = match trust {
        Trust::Anybody => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
            .with_no_client_auth(),
        Trust::Roots(file) => builder.with_root_certificates(roots_of(file)?).with_no_client_auth(),
        Trust::System => builder.with_root_certificates(roots_of_system()?).with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

fn roots_of(file: &str) -> Result<RootCertStore, Error> {
    let bad = |why: &dyn std::fmt::Display| Error::Unavailable(format!("sslrootcert {file}: {why}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| bad(&error))? {
        let certificate = certificate.map_err(|error| bad(&error))?;
        roots.add(certificate).map_err(|error| bad(&error))?;
    }
    if roots.is_empty() { Err(bad(&"holds no certificate")) } else { Ok(roots) }
}

fn roots_of_system() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Error::Unavailable("sslrootcert=system: this machine has no root certificates".into()));
    }
    Ok(roots)
}

/// Takes any certificate, as PostgreSQL's `sslmode=prefer` and `require` mean it; that the server has the
/// certificate's key is still checked.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
