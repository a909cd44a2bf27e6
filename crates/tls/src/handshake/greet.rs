//! A ClientHello is read before rustls sees it: it chooses the certificate and the rules.

use rustls::server::UnbufferedServerConnection;
use rustls::{AlertDescription, Error};

use super::{
    CAPTURE, EARLY_DATA, Failure, HANDSHAKE_FAILURE, Handshake, INAPPROPRIATE_FALLBACK, STATUS_REQUEST, Side,
    Turn, UNEXPECTED_MESSAGE, UNRECOGNIZED_NAME,
};
use crate::hello::{self, Hello};
use crate::room::Room;
use crate::server::Acceptor;
use crate::verify::Findings;

impl Handshake {
    /// The ClientHello chooses what the handshake goes on with.
    pub(super) fn greet(&mut self, acceptor: &Acceptor) -> Turn {
        let bytes = self.input.as_ref().map(Room::filled).unwrap_or_default();
        let message = match hello::collect(bytes) {
            Ok(None) if self.input.as_ref().is_some_and(|r| r.filled().len() > 18_000) => None,
            Ok(None) => return Turn::Read,
            Ok(Some(message)) => Some(message),
            // An alert, or a message that is no hello.
            Err(_) if matches!(bytes, [21, 3, ..]) => {
                self.version = "TLSv1.2";
                return Turn::Refused(UNEXPECTED_MESSAGE);
            }
            Err(_) if matches!(bytes, [22, 3, _, _, _, first, ..] if *first != 1) => {
                return Turn::Refused(UNEXPECTED_MESSAGE);
            }
            // rustls says what is wrong with it.
            Err(_) => {
                self.alien = !matches!(bytes, [22, 3, ..]);
                self.http = [&b"GET "[..], b"POST ", b"HEAD ", b"PUT "].iter().any(|m| bytes.starts_with(m));
                None
            }
        };
        let parsed = message.as_deref().and_then(Hello::parse).unwrap_or_default();
        self.gatherer.client(message.as_deref().unwrap_or_default());
        let Some(entry) = acceptor.choose(&parsed, message.is_some()) else {
            return Turn::Refused(UNRECOGNIZED_NAME);
        };
        if parsed.is_fallback() && entry.speaks_tls13() {
            self.version = "TLSv1.2";
            return Turn::Refused(INAPPROPRIATE_FALLBACK);
        }
        if let Some(version) = parsed.outdated() {
            self.version = version;
        }
        // rustls says nothing to such a client of TLS 1.2.
        let of_tls13 = parsed.offers_tls13() && entry.speaks_tls13();
        if parsed.offers_tls12() && !of_tls13 && !entry.signs_for(&parsed) {
            return Turn::Refused(HANDSHAKE_FAILURE);
        }
        self.sni = parsed.server_name().and_then(|n| Some(std::str::from_utf8(n).ok()?.into()));
        self.skips = parsed.extension(EARLY_DATA).is_some();
        self.staple = parsed.extension(STATUS_REQUEST).and_then(|_| entry.identity.staple.holds());
        self.ktls = entry.ktls;
        let known = &entry.config.alpn_protocols;
        let config = match known.is_empty() || parsed.offers_any(known) {
            true => entry.config.clone(),
            false => entry.silent().clone(),
        };
        if acceptor.captures() > 0 {
            self.hello = message.filter(|m| m.len() <= CAPTURE).map(|mut m| {
                m.shrink_to_fit();
                m.into()
            });
        }
        match UnbufferedServerConnection::new(config) {
            Ok(conn) => {
                self.side = Some(Side::Server(Box::new(conn), entry));
                Turn::Again
            }
            Err(e) => {
                self.failed = Some(e);
                Turn::Again
            }
        }
    }

    pub(super) fn explain(&self, e: Error) -> Failure {
        match e {
            Error::AlertReceived(AlertDescription::CloseNotify) => Failure::Farewell,
            Error::InvalidCertificate(_) if self.findings != Findings::default() => {
                Failure::Untrusted(self.findings)
            }
            _ if self.http => Failure::Http,
            e => Failure::Protocol(e),
        }
    }
}
