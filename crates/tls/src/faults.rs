//! rustls' errors as OpenSSL would number and word them: that is what log lines and `ssl_fc_err` have always
//! said.

use rustls::{AlertDescription as Alert, Error, InvalidMessage, PeerIncompatible, PeerMisbehaved};

/// No version in common.
pub const UNSUPPORTED: u32 = 0x0A00_0102;

/// Number and text of an error.
pub fn openssl(e: &Error) -> (u32, &'static str) {
    use PeerIncompatible as P;
    let reason = match e {
        Error::NoCertificatesPresented => 0xC7,
        Error::PeerIncompatible(P::NoCipherSuitesInCommon) => 0xC1,
        Error::PeerIncompatible(
            P::ServerDoesNotSupportTls12Or13
            | P::Tls12NotOffered
            | P::Tls12NotOfferedOrEnabled
            | P::ServerTlsVersionIsDisabledByOurConfig
            | P::Tls13RequiredForQuic,
        ) => 0x102,
        Error::PeerIncompatible(P::NoKxGroupsInCommon | P::NamedGroupsExtensionRequired) => 0xBA,
        Error::PeerIncompatible(
            P::NoSignatureSchemesInCommon | P::NoCertificateRequestSignatureSchemesInCommon,
        ) => 0x76,
        Error::PeerIncompatible(_) => 0x102,
        Error::NoApplicationProtocol => 0xEB,
        Error::DecryptError => 0x119,
        Error::PeerSentOversizedRecord => 0xC6,
        Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => 0x10B,
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => 0x10B,
        Error::InvalidMessage(InvalidMessage::MessageTooShort | InvalidMessage::MissingData(_)) => 0xA0,
        Error::InvalidMessage(_) => 0x9F,
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => 0xF4,
        Error::PeerMisbehaved(PeerMisbehaved::IllegalMiddleboxChangeCipherSpec) => 0x85,
        Error::PeerMisbehaved(_) => 0x6E,
        Error::AlertReceived(alert) => 1000 + u32::from(u8::from(*alert)),
        Error::InvalidCertificate(_) => 0x86,
        _ => 0x44,
    };
    (0x0A00_0000 | reason, text(0x0A00_0000 | reason))
}

/// Number of a fatal alert that came.
pub fn of_alert(alert: u8) -> u32 {
    0x0A00_0000 | (1000 + u32::from(alert))
}

/// Number of what is wrong with a record of an established connection by the alert that it is answered with.
/// Records `in clear` come where none may be.
pub fn of_record(alert: u8, in_clear: bool) -> u32 {
    let reason = match alert {
        20 => 0x119,
        22 => 0xC6,
        50 => 0x9F,
        70 => 0x10B,
        _ if in_clear => 0x1BB,
        _ => 0xF4,
    };
    0x0A00_0000 | reason
}

/// What OpenSSL calls an error of a handshake of TLS 1.2, if that is another one than with TLS 1.3.
pub fn of_version(code: u32, version: &str) -> Option<(u32, &'static str)> {
    let reason = match (code & 0x007F_FFFF, version) {
        (0xBA, "TLSv1.2") => 0xC1,
        (0x76, "TLSv1.2") => 0x178,
        _ => return None,
    };
    Some((0x0A00_0000 | reason, text(0x0A00_0000 | reason)))
}

/// The text of an error by its number; empty for those that are not told here.
pub fn text(code: u32) -> &'static str {
    if code & 0xFF80_0000 != 0x0A00_0000 {
        return "";
    }
    let reason = code & 0x007F_FFFF;
    if let Some(alert) = reason.checked_sub(1000).and_then(|a| u8::try_from(a).ok()) {
        return alert_text(alert.into());
    }
    match reason {
        0x44 => "internal error",
        0x6E => "bad extension",
        0x76 => "no suitable signature algorithm",
        0x85 => "ccs received early",
        0x86 => "certificate verify failed",
        0x9C => "http request",
        0x9F => "length mismatch",
        0xA0 => "length too short",
        0xBA => "no suitable key share",
        0xC1 => "no shared cipher",
        0xC6 => "packet length too long",
        0xC7 => "peer did not return a certificate",
        0xEA => "callback failed",
        0xEB => "no application protocol",
        0xF4 => "unexpected message",
        0x102 => "unsupported protocol",
        0x178 => "no shared signature algorithms",
        0x175 => "inappropriate fallback",
        0x10B => "wrong version number",
        0x18C => "version too low",
        0x1BB => "bad record type",
        0x119 => "decryption failed or bad record mac",
        _ => "",
    }
}

fn alert_text(alert: Alert) -> &'static str {
    match alert {
        Alert::UnexpectedMessage => "sslv3 alert unexpected message",
        Alert::BadRecordMac => "sslv3 alert bad record mac",
        Alert::DecryptionFailed => "tlsv1 alert decryption failed",
        Alert::RecordOverflow => "tlsv1 alert record overflow",
        Alert::HandshakeFailure => "sslv3 alert handshake failure",
        Alert::BadCertificate => "sslv3 alert bad certificate",
        Alert::UnsupportedCertificate => "sslv3 alert unsupported certificate",
        Alert::CertificateRevoked => "sslv3 alert certificate revoked",
        Alert::CertificateExpired => "sslv3 alert certificate expired",
        Alert::CertificateUnknown => "sslv3 alert certificate unknown",
        Alert::IllegalParameter => "sslv3 alert illegal parameter",
        Alert::UnknownCA => "tlsv1 alert unknown ca",
        Alert::AccessDenied => "tlsv1 alert access denied",
        Alert::DecodeError => "tlsv1 alert decode error",
        Alert::DecryptError => "tlsv1 alert decrypt error",
        Alert::ProtocolVersion => "tlsv1 alert protocol version",
        Alert::InsufficientSecurity => "tlsv1 alert insufficient security",
        Alert::InternalError => "tlsv1 alert internal error",
        Alert::InappropriateFallback => "tlsv1 alert inappropriate fallback",
        Alert::UserCanceled => "tlsv1 alert user cancelled",
        Alert::NoRenegotiation => "tlsv1 alert no renegotiation",
        Alert::UnsupportedExtension => "tlsv1 unsupported extension",
        Alert::UnrecognisedName => "tlsv1 unrecognized name",
        Alert::UnknownPSKIdentity => "tlsv1 alert unknown psk identity",
        Alert::CertificateRequired => "tlsv13 alert certificate required",
        Alert::NoApplicationProtocol => "tlsv1 alert no application protocol",
        _ => "unknown alert type",
    }
}
