//! Names of object identifiers, by their content as DER has it.
//!
//! Short names of attributes and long names of algorithms are OpenSSL's, for rules and answers of the runtime
//! API compare them.

/// Names of algorithms, by the content of their OID.
const ALGORITHMS: &[(&[u8], &str)] = &[
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1], "rsaEncryption"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1], "id-ecPublicKey"),
    (&[0x2b, 0x65, 0x70], "ED25519"),
    (&[0x2b, 0x65, 0x71], "ED448"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], "RSA-MD5"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], "RSA-SHA1"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10], "RSASSA-PSS"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11], "RSA-SHA256"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12], "RSA-SHA384"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], "RSA-SHA512"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], "ecdsa-with-SHA1"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2], "ecdsa-with-SHA256"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], "ecdsa-with-SHA384"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4], "ecdsa-with-SHA512"),
];

/// Short names of attributes, by the content of their OID.
const ATTRIBUTES: &[(&[u8], &str)] = &[
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 13], "description"),
    (&[0x55, 4, 41], "name"),
    (&[0x55, 4, 42], "GN"),
    (&[0x55, 4, 43], "initials"),
    (&[0x55, 4, 46], "dnQualifier"),
    (&[0x55, 4, 65], "pseudonym"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    (&[9, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
];

/// An identifier in digits: `2.5.4.3`.
pub fn dotted(oid: &[u8]) -> String {
    let mut parts: Vec<u64> = Vec::new();
    let mut n = 0u64;
    for c in oid {
        n = n << 7 | u64::from(c & 0x7f);
        if c & 0x80 == 0 {
            match parts.is_empty() {
                true => parts.extend([(n / 40).min(2), n - (n / 40).min(2) * 40]),
                false => parts.push(n),
            }
            n = 0;
        }
    }
    parts.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

/// The name of an algorithm.
pub fn algorithm(oid: &[u8]) -> Option<&'static str> {
    ALGORITHMS.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name)
}

/// The short name of an attribute, or its digits.
pub fn attribute(oid: &[u8]) -> String {
    let known = ATTRIBUTES.iter().find(|(known, _)| *known == oid);
    known.map_or_else(|| dotted(oid), |(_, name)| (*name).to_owned())
}

/// The long name of an algorithm, or its digits.
pub fn long(oid: &[u8]) -> String {
    let found = match algorithm(oid) {
        Some("RSA-MD5") => "md5WithRSAEncryption",
        Some("RSA-SHA1") => "sha1WithRSAEncryption",
        Some("RSA-SHA256") => "sha256WithRSAEncryption",
        Some("RSA-SHA384") => "sha384WithRSAEncryption",
        Some("RSA-SHA512") => "sha512WithRSAEncryption",
        Some("RSASSA-PSS") => "rsassaPss",
        Some(other) => other,
        None => return dotted(oid),
    };
    found.to_owned()
}
