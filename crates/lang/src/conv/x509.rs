//! Names of OpenSSL's certificate errors by number (section 7.3.1, `x509_v_err_str`).

use super::made;
use crate::arg::Arg;
use crate::entry::ConvDef;
use crate::env::Env;
use crate::sample::{Found, Type, Value};

const PREFIX: &str = "X509_V_";

pub(super) const CONVERTERS: &[ConvDef] = &[ConvDef::new(
    "x509_v_err_str",
    Type::Int,
    Type::Str,
    name,
    "The name of a certificate error, or its number.",
    "int(10),x509_v_err_str",
)];

fn name<'a>(env: &Env<'a>, value: Value<'a>, _: &'a [Arg]) -> Found<'a> {
    let number = super::number(value);
    let known = usize::try_from(number as i32).ok().and_then(|at| NAMES.get(at)).filter(|n| !n.is_empty());
    let mut out = made(env.arena);
    match known {
        Some(name) => {
            out.extend_from_slice(PREFIX.as_bytes());
            out.extend_from_slice(name.as_bytes());
        }
        None => {
            let mut digits = Vec::with_capacity(20);
            digits.extend_from_slice((number as u64).to_string().as_bytes());
            out.extend_from_slice(&digits);
        }
    }
    Ok(Value::Str(out.into_bump_slice()))
}

/// The number of an error by its name, `X509_V_ERR_...`.
pub fn number(name: &str) -> Option<u8> {
    let rest = name.strip_prefix(PREFIX)?;
    NAMES.iter().position(|n| *n == rest).and_then(|n| u8::try_from(n).ok())
}

/// By number, without what all begin with.
const NAMES: &[&str] = &[
    "OK",
    "ERR_UNSPECIFIED",
    "ERR_UNABLE_TO_GET_ISSUER_CERT",
    "ERR_UNABLE_TO_GET_CRL",
    "ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE",
    "ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE",
    "ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY",
    "ERR_CERT_SIGNATURE_FAILURE",
    "ERR_CRL_SIGNATURE_FAILURE",
    "ERR_CERT_NOT_YET_VALID",
    "ERR_CERT_HAS_EXPIRED",
    "ERR_CRL_NOT_YET_VALID",
    "ERR_CRL_HAS_EXPIRED",
    "ERR_ERROR_IN_CERT_NOT_BEFORE_FIELD",
    "ERR_ERROR_IN_CERT_NOT_AFTER_FIELD",
    "ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD",
    "ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD",
    "ERR_OUT_OF_MEM",
    "ERR_DEPTH_ZERO_SELF_SIGNED_CERT",
    "ERR_SELF_SIGNED_CERT_IN_CHAIN",
    "ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "ERR_CERT_CHAIN_TOO_LONG",
    "ERR_CERT_REVOKED",
    "ERR_NO_ISSUER_PUBLIC_KEY",
    "ERR_PATH_LENGTH_EXCEEDED",
    "ERR_INVALID_PURPOSE",
    "ERR_CERT_UNTRUSTED",
    "ERR_CERT_REJECTED",
    "ERR_SUBJECT_ISSUER_MISMATCH",
    "ERR_AKID_SKID_MISMATCH",
    "ERR_AKID_ISSUER_SERIAL_MISMATCH",
    "ERR_KEYUSAGE_NO_CERTSIGN",
    "ERR_UNABLE_TO_GET_CRL_ISSUER",
    "ERR_UNHANDLED_CRITICAL_EXTENSION",
    "ERR_KEYUSAGE_NO_CRL_SIGN",
    "ERR_UNHANDLED_CRITICAL_CRL_EXTENSION",
    "ERR_INVALID_NON_CA",
    "ERR_PROXY_PATH_LENGTH_EXCEEDED",
    "ERR_KEYUSAGE_NO_DIGITAL_SIGNATURE",
    "ERR_PROXY_CERTIFICATES_NOT_ALLOWED",
    "ERR_INVALID_EXTENSION",
    "ERR_INVALID_POLICY_EXTENSION",
    "ERR_NO_EXPLICIT_POLICY",
    "ERR_DIFFERENT_CRL_SCOPE",
    "ERR_UNSUPPORTED_EXTENSION_FEATURE",
    "ERR_UNNESTED_RESOURCE",
    "ERR_PERMITTED_VIOLATION",
    "ERR_EXCLUDED_VIOLATION",
    "ERR_SUBTREE_MINMAX",
    "ERR_APPLICATION_VERIFICATION",
    "ERR_UNSUPPORTED_CONSTRAINT_TYPE",
    "ERR_UNSUPPORTED_CONSTRAINT_SYNTAX",
    "ERR_UNSUPPORTED_NAME_SYNTAX",
    "ERR_CRL_PATH_VALIDATION_ERROR",
    "ERR_PATH_LOOP",
    "ERR_SUITE_B_INVALID_VERSION",
    "ERR_SUITE_B_INVALID_ALGORITHM",
    "ERR_SUITE_B_INVALID_CURVE",
    "ERR_SUITE_B_INVALID_SIGNATURE_ALGORITHM",
    "ERR_SUITE_B_LOS_NOT_ALLOWED",
    "ERR_SUITE_B_CANNOT_SIGN_P_384_WITH_P_256",
    "ERR_HOSTNAME_MISMATCH",
    "ERR_EMAIL_MISMATCH",
    "ERR_IP_ADDRESS_MISMATCH",
    "ERR_DANE_NO_MATCH",
    "ERR_EE_KEY_TOO_SMALL",
    "ERR_CA_KEY_TOO_SMALL",
    "ERR_CA_MD_TOO_WEAK",
    "ERR_INVALID_CALL",
    "ERR_STORE_LOOKUP",
    "ERR_NO_VALID_SCTS",
    "ERR_PROXY_SUBJECT_NAME_VIOLATION",
    "ERR_OCSP_VERIFY_NEEDED",
    "ERR_OCSP_VERIFY_FAILED",
    "ERR_OCSP_CERT_UNKNOWN",
    "ERR_UNSUPPORTED_SIGNATURE_ALGORITHM",
    "ERR_SIGNATURE_ALGORITHM_MISMATCH",
    "ERR_SIGNATURE_ALGORITHM_INCONSISTENCY",
    "ERR_INVALID_CA",
    "ERR_PATHLEN_INVALID_FOR_NON_CA",
    "ERR_PATHLEN_WITHOUT_KU_KEY_CERT_SIGN",
    "ERR_KU_KEY_CERT_SIGN_INVALID_FOR_NON_CA",
    "ERR_ISSUER_NAME_EMPTY",
    "ERR_SUBJECT_NAME_EMPTY",
    "ERR_MISSING_AUTHORITY_KEY_IDENTIFIER",
    "ERR_MISSING_SUBJECT_KEY_IDENTIFIER",
    "ERR_EMPTY_SUBJECT_ALT_NAME",
    "ERR_EMPTY_SUBJECT_SAN_NOT_CRITICAL",
    "ERR_CA_BCONS_NOT_CRITICAL",
    "ERR_AUTHORITY_KEY_IDENTIFIER_CRITICAL",
    "ERR_SUBJECT_KEY_IDENTIFIER_CRITICAL",
    "ERR_CA_CERT_MISSING_KEY_USAGE",
    "ERR_EXTENSIONS_REQUIRE_VERSION_3",
    "ERR_EC_KEY_EXPLICIT_PARAMS",
];
