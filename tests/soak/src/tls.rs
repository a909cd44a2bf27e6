//! One certificate for both sides, and what rustls needs to use it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub struct Certificates {
    pub pem: String,
    pub authority: String,
    servers: [Arc<ServerConfig>; 2],
    /// HTTP/1 and HTTP/2, each with TLS 1.3 and with TLS 1.2.
    clients: [[Arc<ClientConfig>; 2]; 2],
}

fn alpn(h2: bool) -> Vec<Vec<u8>> {
    vec![if h2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }]
}

impl Certificates {
    pub fn new() -> Certificates {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
            .expect("a certificate can be made");
        let der: CertificateDer<'static> = made.cert.der().clone();
        let key = || PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let server = |h2| {
            let mut config = ServerConfig::builder()
                .with_no_client_auth()
                .with_single_cert(vec![der.clone()], key())
                .expect("the pair fits");
            config.alpn_protocols = alpn(h2);
            Arc::new(config)
        };
        let mut roots = RootCertStore::empty();
        roots.add(der.clone()).expect("a root");
        let client = |h2, version| {
            let mut config = ClientConfig::builder_with_protocol_versions(&[version])
                .with_root_certificates(roots.clone())
                .with_no_client_auth();
            config.alpn_protocols = alpn(h2);
            Arc::new(config)
        };
        let clients = [false, true]
            .map(|h2| [client(h2, &rustls::version::TLS13), client(h2, &rustls::version::TLS12)]);
        Certificates {
            pem: made.cert.pem() + &made.signing_key.serialize_pem(),
            authority: made.cert.pem(),
            servers: [false, true].map(server),
            clients,
        }
    }

    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::write(folder.join("pair.pem"), &self.pem)?;
        std::fs::write(folder.join("authority.pem"), &self.authority)
    }

    pub fn acceptor(&self, h2: bool) -> TlsAcceptor {
        self.servers[h2 as usize].clone().into()
    }

    pub async fn connect(
        &self,
        stream: TcpStream,
        h2: bool,
        old: bool,
    ) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(self.clients[h2 as usize][old as usize].clone()).connect(name, stream).await
    }
}
