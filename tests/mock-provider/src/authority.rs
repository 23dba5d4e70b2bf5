//! Certificates that only a test trusts.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A root of trust that is made when a test starts and gone when it ends. A client trusts it
/// where `SSL_CERT_FILE` names a file with its [`Authority::pem`].
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    /// A new one.
    ///
    /// # Panics
    /// Where the machine has no randomness.
    #[must_use]
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(Vec::new()).expect("no names are fine");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).expect("it can sign itself");
        Self {
            pem: root.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// Its certificate, in PEM.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A server's side with a certificate for one name or address, that speaks these
    /// protocols, the one that it likes best first.
    pub(crate) fn acceptor(&self, subject: &str, protocols: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().expect("a key can be made");
        let params = CertificateParams::new(vec![subject.to_owned()]).expect("a name or address");
        let certificate = params
            .signed_by(&key, &self.issuer)
            .expect("the authority can sign");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("the key is one");
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has them")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("key and certificate belong together");
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
