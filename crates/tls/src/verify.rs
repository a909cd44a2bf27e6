//! Verifying the other side's certificate (manual, `verify`, `ca-file`, `crl-file`, `crt-ignore-err`,
//! `verifyhost`).
//!
//! webpki builds and checks paths. Where users of OpenSSL rely on more it is done here: a certificate of the
//! CA file that is shown itself, certificates of version 1, common names. Errors become OpenSSL's numbers,
//! which rules and `crt-ignore-err` name. Verification runs inside rustls; what it found is left in a cell of
//! the thread, from where the handshake at hand takes it ([`take_findings`]).

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, PeerMisbehaved,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use crate::chain::{Chain, Fault, Purpose, Signed};
use crate::host;
use crate::revoked::Revocations;
use crate::schemes;
use x509::Certificate;

/// Numbers of OpenSSL's errors.
pub mod code {
    #![allow(missing_docs)]
    pub const OK: u8 = 0;
    pub const UNSPECIFIED: u8 = 1;
    pub const NO_ISSUER_ABOVE: u8 = 2;
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
    pub const NO_CERT_SIGN: u8 = 32;
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
    /// The last error, which is the result of all, or ended the handshake; 0 if none.
    pub verdict: u8,
    /// Depth of the latter.
    pub verdict_depth: u8,
    /// The certificate names another host.
    pub wrong_host: Option<Expected>,
}

/// Where the name comes from that a server's certificate has to be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It is the connection's: `sni`, or the host of the request.
    Asked,
    /// `verifyhost`.
    Configured,
}

thread_local! {
    static ROOT: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
    static REFUSED: Cell<Vec<Box<[u8]>>> = const { Cell::new(Vec::new()) };
    static FOUND: Cell<Findings> = const { Cell::new(Findings { leaf: 0, authority: 0, depth: 0, verdict: 0, verdict_depth: 0, wrong_host: None }) };
}

/// The certificates that the last verification on this thread refused.
pub fn take_refused() -> Vec<Box<[u8]>> {
    REFUSED.take()
}

/// The name, as DER, of the last certificate of the chain that the last verification on this thread put
/// together.
pub fn take_root() -> Option<Box<[u8]>> {
    ROOT.take()
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
    pub const ALL: Ignored = Ignored(!Ignored::NEVER);
    /// HAProxy refuses for these numbers (32 to 63) whatever it is told to ignore: unknown critical
    /// extensions, names that an authority may not give, hosts.
    const NEVER: u128 = 0xffff_ffff << 32;

    /// One more.
    pub fn add(&mut self, number: u8) {
        self.0 |= 1u128.checked_shl(u32::from(number)).unwrap_or(0) & !Self::NEVER;
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
    /// The certificates of a `ca-file`, whose names clients are told, those of a `ca-verify-file`, whose are
    /// not, and revocation lists.
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
        self.verify(leaf, above, Purpose::Client, UnixTime::now(), [Ignored(u128::MAX); 2]).0
    }

    /// Verifies a chain up to the first error that is not ignored; what was found, and that error.
    fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
        purpose: Purpose,
        now: UnixTime,
        ignored: [Ignored; 2],
    ) -> (Findings, Option<u8>) {
        let mut report = Report { findings: Findings::default(), ignored };
        let stopped = match Certificate::parse(leaf) {
            Some(parsed) => self.examine((leaf, parsed), above, purpose, now, &mut report),
            None => report.all([(code::UNSPECIFIED, 0)]),
        };
        (report.findings, stopped.break_value())
    }

    /// Reports errors in OpenSSL's order. What webpki refuses and this does not find is reported last.
    fn examine(
        &self,
        (leaf, parsed): (&CertificateDer<'_>, Certificate<'_>),
        above: &[CertificateDer<'_>],
        purpose: Purpose,
        now: UnixTime,
        report: &mut Report,
    ) -> ControlFlow<u8> {
        let usage = match purpose {
            Purpose::Client => KeyUsage::client_auth(),
            Purpose::Server => KeyUsage::server_auth(),
        };
        let own = self.certificates.iter().any(|c| c == leaf);
        let checked = match EndEntityCert::try_from(leaf) {
            // It is believed as it is, if it is its own issuer.
            _ if own => Ok(()),
            Ok(cert) => cert
                .verify_for_usage(self.algorithms.all, &self.anchors, above, now, usage, None, None)
                .map(|_| ()),
            Err(e) => Err(e),
        };
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let chain = Chain::new(parsed, above, &self.certificates, seconds);
        ROOT.set(chain.root().map(|name| name.into()));
        if let Err(webpki::Error::UnsupportedCriticalExtension) = checked {
            report.all([(code::CRITICAL, 0)])?;
        }
        report.all(chain.missing())?;
        report.all(chain.extensions(purpose))?;
        report.all(self.revoked(&chain, seconds))?;
        let signed = |cert: &Certificate<'_>, issuer: &Certificate<'_>| self.signed_by(cert, issuer);
        report.all(chain.inside(seconds, checked.is_err().then_some(&signed as Signed<'_>)))?;
        // A date that is ignored must not hide what webpki would have looked at after it.
        let checked = match (checked, EndEntityCert::try_from(leaf), chain.begins()) {
            (
                Err(webpki::Error::CertExpired { .. } | webpki::Error::CertNotValidYet { .. }),
                Ok(cert),
                Some(then),
            ) => cert
                .verify_for_usage(self.algorithms.all, &self.anchors, above, then, usage, None, None)
                .map(|_| ()),
            (checked, ..) => checked,
        };
        let last = match checked {
            Ok(()) => return ControlFlow::Continue(()),
            Err(webpki::Error::UnsupportedCertVersion | webpki::Error::CaUsedAsEndEntity) => {
                self.verify_old(&parsed)
            }
            Err(e) => Self::blame(&e),
        };
        // Dates and missing issuers are above, whoever found them first.
        let known =
            matches!(last, code::NO_ISSUER | code::EXPIRED | code::NOT_YET_VALID | code::BAD_SIGNATURE)
                && report.findings.verdict != 0;
        report.all((last != code::OK && !known && !report.has(last)).then_some((last, 0)))
    }

    /// The first certificate of a chain that was revoked, or of which the lists don't tell.
    fn revoked(&self, chain: &Chain<'_>, now: i64) -> Option<Fault> {
        let signed = |issuer: &Certificate<'_>, what: &[u8], algorithm: &[u8], signature: &[u8]| {
            self.signed_with(issuer, what, algorithm, signature)
                || signed_with_sha1(issuer, what, algorithm, signature)
        };
        self.crls.check(chain, now, &signed)
    }

    /// A leaf that webpki refuses for its form: its issuer has to be an anchor.
    fn verify_old(&self, leaf: &Certificate<'_>) -> u8 {
        let issuers = self.certificates.iter().filter_map(|c| Certificate::parse(c));
        let signed = issuers.filter(|i| i.subject == leaf.issuer).any(|issuer| self.signed_by(leaf, &issuer));
        if signed { code::OK } else { code::NO_ISSUER }
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

    /// OpenSSL's number for an error of webpki.
    fn blame(e: &webpki::Error) -> u8 {
        use webpki::Error as E;
        match e {
            E::UnknownIssuer => code::NO_ISSUER,
            E::CertExpired { .. } => code::EXPIRED,
            E::CertNotValidYet { .. } => code::NOT_YET_VALID,
            E::EndEntityUsedAsCa => code::INVALID_CA,
            E::PathLenConstraintViolated => code::PATH_LENGTH,
            E::MaximumPathDepthExceeded => code::TOO_LONG,
            E::NameConstraintViolation => code::NAME_CONSTRAINT,
            E::UnsupportedCriticalExtension => code::CRITICAL,
            E::RequiredEkuNotFoundContext(_) => code::INVALID_PURPOSE,
            E::InvalidSignatureForPublicKey => code::BAD_SIGNATURE,
            _ => code::UNSPECIFIED,
        }
    }
}

/// What was found so far, and what of it is no reason to stop.
struct Report {
    findings: Findings,
    /// Of the leaf, and above it.
    ignored: [Ignored; 2],
}

impl Report {
    /// Notes errors up to the first that is not ignored.
    fn all(&mut self, faults: impl IntoIterator<Item = Fault>) -> ControlFlow<u8> {
        for (number, depth) in faults {
            let found = &mut self.findings;
            (found.verdict, found.verdict_depth) = (number, depth);
            match depth {
                0 if found.leaf == 0 => found.leaf = number,
                0 => {}
                _ if found.authority == 0 => (found.authority, found.depth) = (number, depth),
                _ => {}
            }
            let [leaf, above] = self.ignored;
            if !(if depth == 0 { leaf } else { above }).has(number) {
                return ControlFlow::Break(number);
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether an error was noted.
    fn has(&self, number: u8) -> bool {
        let Findings { leaf, authority, verdict, .. } = self.findings;
        [leaf, authority, verdict].contains(&number)
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

/// The error that rustls tells the peer with its alert.
fn refusal(number: u8) -> Error {
    Error::InvalidCertificate(match number {
        code::EXPIRED | code::CRL_EXPIRED => CertificateError::Expired,
        // "bad certificate"
        code::NOT_YET_VALID | code::CRL_EARLY | code::REJECTED => CertificateError::BadEncoding,
        code::REVOKED => CertificateError::Revoked,
        code::BAD_SIGNATURE | code::CRL_SIGNATURE => CertificateError::BadSignature,
        code::INVALID_PURPOSE => CertificateError::InvalidPurpose,
        code::HOSTNAME => CertificateError::NotValidForName,
        // "certificate unknown"
        code::CRITICAL | code::NAME_CONSTRAINT | code::NO_CERT_SIGN => {
            CertificateError::Other(OtherError(Arc::new(std::fmt::Error)))
        }
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
        let ignored = [self.ignored_leaf, self.ignored_authority];
        let (found, stopped) = self.trust.verify(leaf, above, Purpose::Client, now, ignored);
        FOUND.set(found);
        if let Some(number) = stopped {
            keep(leaf, above);
            return Err(refusal(number));
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
#[derive(Clone, Debug)]
pub struct OfServers {
    /// `None`: `verify none`.
    trust: Option<Arc<Trust>>,
    /// `verifyhost`.
    host: Option<Box<str>>,
    /// The connection's name, where it is one that can't be sent.
    unsent: Option<Box<[u8]>>,
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
        OfServers { trust, host, unsent: None, algorithms, schemes }
    }

    /// Whether certificates are looked at.
    pub(crate) fn verifies(&self) -> bool {
        self.trust.is_some()
    }

    /// The same for one connection, whose name can't be sent and has to be the certificate's all the same.
    pub(crate) fn of(&self, name: &[u8]) -> OfServers {
        OfServers { unsent: Some(name.into()), ..self.clone() }
    }

    /// The name that a certificate has to be for: that of the connection, or else that of the configuration.
    fn expected<'a>(&'a self, sent: &'a ServerName<'_>) -> Option<(&'a [u8], Expected)> {
        let asked = match sent {
            ServerName::DnsName(name) => Some(name.as_ref().as_bytes()),
            _ => self.unsent.as_deref(),
        };
        let configured = || self.host.as_deref().map(|host| (host.as_bytes(), Expected::Configured));
        asked.map(|name| (name, Expected::Asked)).or_else(configured)
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
        let ignored = [Ignored::default(); 2];
        let (mut found, mut stopped) = trust.verify(leaf, above, Purpose::Server, now, ignored);
        if let Some((name, whose)) = self.expected(name)
            && stopped.is_none()
            && !Certificate::parse(leaf).is_some_and(|c| host::is_named(&c, name))
        {
            (found.leaf, found.verdict, found.wrong_host) = (code::HOSTNAME, code::HOSTNAME, Some(whose));
            stopped = Some(code::HOSTNAME);
        }
        FOUND.set(found);
        match stopped {
            None => Ok(ServerCertVerified::assertion()),
            Some(number) => Err(refusal(number)),
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
