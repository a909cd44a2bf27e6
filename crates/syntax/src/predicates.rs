//! The predicates of conditions, one table.

use crate::environment::Environment;
use crate::facts::Facts;
use crate::version::{Version, openssl};

/// An entry of the table.
pub(crate) struct Predicate {
    pub(crate) name: &'static str,
    /// How many arguments it takes. A single one that is missing counts as empty.
    pub(crate) args: usize,
    /// The test; `None` for an argument it can't make sense of.
    pub(crate) test: fn(&[String], &Environment, &dyn Facts) -> Option<bool>,
}

const fn entry(
    name: &'static str,
    args: usize,
    test: fn(&[String], &Environment, &dyn Facts) -> Option<bool>,
) -> Predicate {
    Predicate { name, args, test }
}

/// All predicates.
pub(crate) const PREDICATES: &[Predicate] = &[
    entry("awslc_api_atleast", 1, |args, _, facts| Some(facts.awslc_api()? >= first(args).parse().ok()?)),
    entry("awslc_api_before", 1, |args, _, facts| Some(facts.awslc_api()? < first(args).parse().ok()?)),
    entry("defined", 1, |args, environment, _| Some(environment.get(first(args)).is_some())),
    entry("enabled", 1, |args, _, facts| Some(facts.enabled(first(args)).unwrap_or(false))),
    entry("feature", 1, |args, _, facts| Some(facts.feature(first(args)))),
    entry("fips_mode", 0, |_, _, facts| Some(facts.fips_mode())),
    entry("openssl_version_atleast", 1, |args, _, facts| Some(ours(facts)? >= openssl(first(args))?)),
    entry("openssl_version_before", 1, |args, _, facts| Some(ours(facts)? < openssl(first(args))?)),
    entry("ssllib_name_startswith", 1, |args, _, facts| Some(facts.ssl_library().starts_with(first(args)))),
    entry("streq", 2, |args, _, _| Some(first(args) == second(args))),
    entry("strneq", 2, |args, _, _| Some(first(args) != second(args))),
    entry("strstr", 2, |args, _, _| Some(first(args).contains(second(args)))),
    entry("version_atleast", 1, |args, _, facts| Some(Version::parse(facts.version()) >= asked(args))),
    entry("version_before", 1, |args, _, facts| Some(Version::parse(facts.version()) < asked(args))),
];

fn first(args: &[String]) -> &str {
    args.first().map_or("", String::as_str)
}

fn second(args: &[String]) -> &str {
    args.get(1).map_or("", String::as_str)
}

fn ours(facts: &dyn Facts) -> Option<[u64; 4]> {
    openssl(facts.openssl_version()?)
}

fn asked(args: &[String]) -> Version {
    Version::parse(first(args))
}

/// The predicate whose name stands at the beginning of `text`.
pub(crate) fn find(text: &str) -> Option<&'static Predicate> {
    let length = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    PREDICATES.iter().find(|predicate| text.get(..length) == Some(predicate.name))
}
