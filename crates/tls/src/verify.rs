//! Verifying the other side's certificate (manual, `verify`, `ca-file`, `crl-file`, `crt-ignore-err`, `verifyhost`).
//!
//! webpki builds and checks paths. Where users of OpenSSL rely on more it is done here: a certificate of the CA file that
//! is shown itself, certificates of version 1, common names. Errors become OpenSSL's numbers, which rules and
//! `crt-ignore-err` name. Verification runs inside rustls; what it found is left in a cell of the thread, from where the
//! handshake at hand takes it ([`take_findings`]).

use std::cell::Cell;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use crate::revoked::Revocations;
use crate::schemes;
use crate::x509::Certificate;

/// Numbers of OpenSSL's errors.
pub mod code {
    #![allow(missing_docs)]
    pub const OK: u8 = 0;
    pub const UNSPECIFIED: u8 = 1;
    pub const NO_CRL: u8 = 3;
    pub const BAD_SIGNATURE: u8 = 7;
    pub const NOT_YET_VALID: u8 = 9;
    pub const EXPIRED: u8 = 10;
    pub const CRL_SIGNATURE: u8 = 8;
    pub const CRL_EARLY: u8 = 11;
    pub const CRL_EXPIRED: u8 = 12;
    pub const SELF_SIGNED: u8 = 18;
    pub const SELF_SIGNED_IN_CHAIN: u8 = 19;
    pub const NO_ISSUER: u8 = 20;
    pub const NO_LEAF_SIGNATURE: u8 = 21;
    pub const TOO_LONG: u8 = 22;
    pub const REVOKED: u8 = 23;
    pub const INVALID_CA: u8 = 79;
    pub const PATH_LENGTH: u8 = 25;
    pub const INVALID_PURPOSE: u8 = 26;
    pub const REJECTED: u8 = 28;
    pub const CRITICAL: u8 = 34;
    pub const NAME_CONSTRAINT: u8 = 47;
    pub const HOSTNAME: u8 = 62;
}

/// What verification found: OpenSSL's number of an error, and how far above the leaf it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Error of the leaf, 0 if none.
    pub leaf: u8,
    /// Error of what is above it, 0 if none.
    pub authority: u8,
    /// Depth of the latter.
    pub depth: u8,
    /// The certificate names another host.
    pub wrong_host: bool,
}

thread_local! {
    static REFUSED: Cell<Vec<Box<[u8]>>> = const { Cell::new(Vec::new()) };
    static FOUND: Cell<Findings> = const { Cell::new(Findings { leaf: 0, authority: 0, depth: 0, wrong_host: false }) };
}

/// The certificates that the last verification on this thread refused.
pub fn take_refused() -> Vec<Box<[u8]>> {
    REFUSED.take()
}

/// Keeps what is refused, for the log line that tells of it.
fn keep(leaf: &CertificateDer<'_>, above: &[CertificateDer<'_>]) {
    REFUSED.set(std::iter::once(leaf).chain(above).map(|c| c.as_ref().into()).collect());
}

/// What the last verification on this thread found.
pub fn take_findings() -> Findings {
    FOUND.take()
}

/// Errors that end no handshake.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ignored(u128);

impl Ignored {
    /// All of them.
    pub const ALL: Ignored = Ignored(u128::MAX);

    /// One more.
    pub fn add(&mut self, number: u8) {
        self.0 |= 1u128.checked_shl(u32::from(number)).unwrap_or(0);
    }

    fn has(self, number: u8) -> bool {
        self.0 & 1u128.checked_shl(u32::from(number)).unwrap_or(0) != 0
    }
}

/// Whom to believe.
#[derive(Debug)]
pub struct Trust {
    anchors: Vec<TrustAnchor<'static>>,
    certificates: Vec<CertificateDer<'static>>,
    /// How many of them, from the first, clients are told.
    told: usize,
    crls: Revocations,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    /// The certificates of a `ca-file`, whose names clients are told, those of a `ca-verify-file`, whose are not, and
    /// revocation lists.
    ///
    /// # Errors
    /// When a list can't be read.
    pub fn new(
        told: &[CertificateDer<'static>],
        silent: &[CertificateDer<'static>],
        lists: &[Vec<u8>],
    ) -> Result<Trust, String> {
        let certificates = [told, silent].concat();
        let mut anchors = Vec::new();
        for der in &certificates {
            if let Ok(anchor) = webpki::anchor_from_trusted_cert(der) {
                anchors.push(anchor.to_owned());
            }
        }
        let crls = Revocations::new(lists)?;
        let algorithms = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        Ok(Trust { anchors, certificates, told: told.len(), crls, algorithms })
    }

    /// Whether there is no one to believe.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    /// Names of the authorities, as clients are told them.
    fn subjects(&self) -> Vec<DistinguishedName> {
        let parsed = self.certificates.iter().take(self.told).filter_map(|c| Certificate::parse(c));
        parsed.map(|c| DistinguishedName::from(c.subject.to_vec())).collect()
    }

    /// What is to be found of a client's chain now.
    pub(crate) fn of_client(&self, chain: &[CertificateDer<'_>]) -> Findings {
        let Some((leaf, above)) = chain.split_first() else { return Findings::default() };
        self.verify(leaf, above, KeyUsage::client_auth(), UnixTime::now())
    }

    /// Verifies a chain.
    fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        usage: KeyUsage,
        now: UnixTime,
    ) -> Findings {
        let own = self.certificates.iter().any(|c| c == leaf);
        let Some(parsed) = Certificate::parse(leaf) else {
            return Findings { leaf: code::UNSPECIFIED, ..Findings::default() };
        };
        if own {
            return Findings { leaf: dates(&parsed, now), ..Findings::default() };
        }
        let cert = match EndEntityCert::try_from(leaf) {
            Ok(cert) => cert,
            Err(webpki::Error::UnsupportedCertVersion) => return self.verify_old(&parsed, now),
            Err(_) => return Findings { leaf: code::UNSPECIFIED, ..Findings::default() },
        };
        let all = self.algorithms.all;
        let checked = cert.verify_for_usage(all, &self.anchors, above, now, usage, None, None);
        match checked {
            Ok(_) => self.revoked(parsed, above, now),
            Err(webpki::Error::CaUsedAsEndEntity) => self.verify_old(&parsed, now),
            Err(e) => self.blame(&parsed, above, &e, now),
        }
    }

    /// Whether a chain that holds otherwise was revoked.
    fn revoked(&self, leaf: Certificate<'_>, above: &[CertificateDer<'_>], now: UnixTime) -> Findings {
        let known: Vec<Certificate<'_>> =
            self.certificates.iter().chain(above).filter_map(|c| Certificate::parse(c)).collect();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let signed = |issuer: &Certificate<'_>, what: &[u8], algorithm: &[u8], signature: &[u8]| {
            self.signed_with(issuer, what, algorithm, signature)
                || signed_with_sha1(issuer, what, algorithm, signature)
        };
        match self.crls.check(leaf, &known, now, &signed) {
            None => Findings::default(),
            Some((number, 0)) => Findings { leaf: number, ..Findings::default() },
            Some((number, depth)) => Findings { authority: number, depth, ..Findings::default() },
        }
    }

    /// A leaf that webpki refuses for its form: its issuer has to be an anchor.
    fn verify_old(&self, leaf: &Certificate<'_>, now: UnixTime) -> Findings {
        let issuers = self.certificates.iter().filter_map(|c| Certificate::parse(c));
        let signed = issuers.filter(|i| i.subject == leaf.issuer).any(|issuer| self.signed_by(leaf, &issuer));
        match signed {
            true => match dates(leaf, now) {
                code::OK => self.revoked(*leaf, &[], now),
                number => Findings { leaf: number, ..Findings::default() },
            },
            false if leaf.is_self_issued() => Findings { leaf: code::SELF_SIGNED, ..Findings::default() },
            false => Findings { leaf: code::NO_ISSUER, ..Findings::default() },
        }
    }

    fn signed_by(&self, leaf: &Certificate<'_>, issuer: &Certificate<'_>) -> bool {
        self.signed_with(issuer, leaf.signed, leaf.signature_algorithm_id, leaf.signature)
    }

    /// Whether an issuer signed something.
    fn signed_with(&self, issuer: &Certificate<'_>, what: &[u8], id: &[u8], signature: &[u8]) -> bool {
        let Some((algorithm, key)) = issuer.key() else { return false };
        self.algorithms.all.iter().any(|a| {
            a.signature_alg_id().as_ref() == id
                && a.public_key_alg_id().as_ref() == algorithm
                && a.verify_signature(key, what, signature).is_ok()
        })
    }

    /// Which certificate an error is about, and OpenSSL's number for it.
    fn blame(
        &self,
        leaf: &Certificate<'_>,
        above: &[CertificateDer<'_>],
        e: &webpki::Error,
        now: UnixTime,
    ) -> Findings {
        use webpki::Error as E;
        let of_leaf = |number| Findings { leaf: number, ..Findings::default() };
        match e {
            E::UnknownIssuer => {
                if leaf.is_self_issued() {
                    return of_leaf(code::SELF_SIGNED);
                }
                // The chain as far as it was shown; what is missing is missing at its end.
                let mut last = *leaf;
                let mut depth = 0;
                while let Some(next) = above
                    .iter()
                    .filter_map(|c| Certificate::parse(c))
                    .find(|c| c.subject == last.issuer && !last.is_self_issued())
                {
                    last = next;
                    depth += 1;
                    if depth > above.len() {
                        break;
                    }
                }
                let depth = u8::try_from(depth).unwrap_or(u8::MAX);
                match depth {
                    0 => of_leaf(code::NO_ISSUER),
                    _ if last.is_self_issued() => {
                        Findings { authority: code::SELF_SIGNED_IN_CHAIN, depth, ..Findings::default() }
                    }
                    _ => Findings { authority: code::NO_ISSUER, depth, ..Findings::default() },
                }
            }
            E::CertExpired { .. } | E::CertNotValidYet { .. } => match dates(leaf, now) {
                code::OK => {
                    let number =
                        if matches!(e, E::CertExpired { .. }) { code::EXPIRED } else { code::NOT_YET_VALID };
                    Findings { authority: number, depth: 1, ..Findings::default() }
                }
                number => of_leaf(number),
            },
            E::EndEntityUsedAsCa => Findings { authority: code::INVALID_CA, depth: 1, ..Findings::default() },
            E::PathLenConstraintViolated => {
                Findings { authority: code::PATH_LENGTH, depth: 1, ..Findings::default() }
            }
            E::MaximumPathDepthExceeded => of_leaf(code::TOO_LONG),
            E::NameConstraintViolation => of_leaf(code::NAME_CONSTRAINT),
            E::UnsupportedCriticalExtension => of_leaf(code::CRITICAL),
            E::RequiredEkuNotFoundContext(_) => of_leaf(code::INVALID_PURPOSE),
            // Another one's name, perhaps an authority's, does not make it that one's.
            E::InvalidSignatureForPublicKey if leaf.is_self_issued() => of_leaf(code::SELF_SIGNED),
            E::InvalidSignatureForPublicKey => of_leaf(code::BAD_SIGNATURE),
            _ => of_leaf(code::UNSPECIFIED),
        }
    }
}

/// Lists, unlike certificates, may still be signed with RSA and SHA-1.
fn signed_with_sha1(issuer: &Certificate<'_>, what: &[u8], id: &[u8], signature: &[u8]) -> bool {
    use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};
    const ID: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 5, 5, 0];
    let Some((_, key)) = issuer.key().filter(|_| id == ID) else { return false };
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, key);
    key.verify(what, signature).is_ok()
}

fn dates(cert: &Certificate<'_>, now: UnixTime) -> u8 {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    match cert.times() {
        Some((from, _)) if now < from => code::NOT_YET_VALID,
        Some((_, to)) if now > to => code::EXPIRED,
        Some(_) => code::OK,
        None => code::UNSPECIFIED,
    }
}

/// The error that rustls tells the peer with its alert.
fn refusal(number: u8) -> Error {
    Error::InvalidCertificate(match number {
        code::EXPIRED => CertificateError::Expired,
        code::NOT_YET_VALID => CertificateError::NotValidYet,
        code::REVOKED => CertificateError::Revoked,
        code::BAD_SIGNATURE => CertificateError::BadSignature,
        code::INVALID_PURPOSE => CertificateError::InvalidPurpose,
        code::HOSTNAME => CertificateError::NotValidForName,
        _ => CertificateError::UnknownIssuer,
    })
}

/// A peer that signs with what it was not asked for is refused.
fn allowed(schemes: Option<&[SignatureScheme]>, dss: &DigitallySignedStruct) -> Result<(), Error> {
    match schemes {
        Some(list) if !list.contains(&dss.scheme) => {
            Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
        }
        _ => Ok(()),
    }
}

/// The signature of the handshake, also by certificates that webpki does not read.
fn signature(
    algorithms: &WebPkiSupportedAlgorithms,
    message: &[u8],
    cert: &CertificateDer<'_>,
    dss: &DigitallySignedStruct,
    tls13: bool,
) -> Result<HandshakeSignatureValid, Error> {
    if EndEntityCert::try_from(cert).is_ok() {
        return match tls13 {
            true => verify_tls13_signature(message, cert, dss, algorithms),
            false => verify_tls12_signature(message, cert, dss, algorithms),
        };
    }
    let bad = || Error::InvalidCertificate(CertificateError::BadSignature);
    let parsed = Certificate::parse(cert).ok_or_else(bad)?;
    let (algorithm, key) = parsed.key().ok_or_else(bad)?;
    let of_scheme = algorithms.mapping.iter().find(|(s, _)| *s == dss.scheme).map(|(_, a)| *a);
    let fits = of_scheme.unwrap_or_default().iter().any(|a| {
        a.public_key_alg_id().as_ref() == algorithm
            && a.verify_signature(key, message, dss.signature()).is_ok()
    });
    if fits { Ok(HandshakeSignatureValid::assertion()) } else { Err(bad()) }
}

/// Verifies clients.
#[derive(Debug)]
pub struct OfClients {
    trust: Arc<Trust>,
    required: bool,
    ignored_leaf: Ignored,
    ignored_authority: Ignored,
    subjects: Vec<DistinguishedName>,
    schemes: Option<Arc<[SignatureScheme]>>,
}

impl OfClients {
    /// `verify required` or `optional`; `names` says whether clients are told whom we believe.
    ///
    /// `schemes` are those that their signatures may have.
    pub fn new(
        trust: Arc<Trust>,
        required: bool,
        [leaf, authority]: [Ignored; 2],
        names: bool,
        schemes: Option<Arc<[SignatureScheme]>>,
    ) -> OfClients {
        let subjects = if names { trust.subjects() } else { Vec::new() };
        OfClients { trust, required, ignored_leaf: leaf, ignored_authority: authority, subjects, schemes }
    }
}

impl ClientCertVerifier for OfClients {
    fn client_auth_mandatory(&self) -> bool {
        self.required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let found = self.trust.verify(leaf, above, KeyUsage::client_auth(), now);
        FOUND.set(found);
        if found.authority != 0 && !self.ignored_authority.has(found.authority) {
            keep(leaf, above);
            return Err(refusal(found.authority));
        }
        if found.leaf != 0 && !self.ignored_leaf.has(found.leaf) {
            keep(leaf, above);
            return Err(refusal(found.leaf));
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        allowed(self.schemes.as_deref(), dss)?;
        signature(&self.trust.algorithms, message, cert, dss, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        allowed(self.schemes.as_deref(), dss)?;
        signature(&self.trust.algorithms, message, cert, dss, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes::common(self.trust.algorithms.supported_schemes(), self.schemes.as_deref())
    }
}

/// Verifies servers.
#[derive(Debug)]
pub struct OfServers {
    /// `None`: `verify none`.
    trust: Option<Arc<Trust>>,
    /// `verifyhost`.
    host: Option<Box<str>>,
    algorithms: WebPkiSupportedAlgorithms,
    schemes: Option<Arc<[SignatureScheme]>>,
}

impl OfServers {
    /// `verify required` with whom to believe, or `verify none`; `verifyhost`.
    ///
    /// `schemes` are those that their signatures may have.
    pub fn new(
        trust: Option<Arc<Trust>>,
        host: Option<Box<str>>,
        schemes: Option<Arc<[SignatureScheme]>>,
    ) -> OfServers {
        let algorithms = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        OfServers { trust, host, algorithms, schemes }
    }
}

/// The name that stands for "no name is known": nothing is sent, nothing is checked.
pub fn nameless() -> ServerName<'static> {
    ServerName::IpAddress(std::net::IpAddr::from([0, 0, 0, 0]).into())
}

impl ServerCertVerifier for OfServers {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trust) = &self.trust else { return Ok(ServerCertVerified::assertion()) };
        let mut found = trust.verify(leaf, above, KeyUsage::server_auth(), now);
        let sent = match name {
            ServerName::DnsName(name) => Some(name.as_ref()),
            _ => None,
        };
        if let Some(host) = self.host.as_deref().or(sent)
            && found.leaf == 0
            && found.authority == 0
            && !Certificate::parse(leaf).is_some_and(|c| is_for(&c, host))
        {
            (found.leaf, found.wrong_host) = (code::HOSTNAME, true);
        }
        FOUND.set(found);
        match (found.authority, found.leaf) {
            (0, 0) => Ok(ServerCertVerified::assertion()),
            (0, number) | (number, _) => Err(refusal(number)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        allowed(self.schemes.as_deref(), dss)?;
        signature(&self.algorithms, message, cert, dss, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        allowed(self.schemes.as_deref(), dss)?;
        signature(&self.algorithms, message, cert, dss, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes::common(self.algorithms.supported_schemes(), self.schemes.as_deref())
    }
}

/// Whether a certificate is for a host: one of its DNS names is, or one of its common names.
fn is_for(cert: &Certificate<'_>, host: &str) -> bool {
    cert.dns_names().chain(cert.common_names()).any(|name| is_name_for(name, host.as_bytes()))
}

/// Whether a name, perhaps with `*` as its first label, is the host's.
fn is_name_for(name: &[u8], host: &[u8]) -> bool {
    if let Some(rest) = name.strip_prefix(b"*.") {
        let label = host.iter().position(|c| *c == b'.');
        return label.is_some_and(|at| at > 0 && host[at + 1..].eq_ignore_ascii_case(rest));
    }
    name.eq_ignore_ascii_case(host)
}
