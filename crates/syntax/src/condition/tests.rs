use super::*;
use crate::reader::tests::Build;

fn value(text: &str) -> Result<bool, ConditionError> {
    let mut environment = Environment::new();
    environment.set("HOME", "/root");
    evaluate(text, &environment, &Build)
}

#[test]
fn values_are_those_of_the_oracle() {
    let truths = "1;2;-1;+1;!0;!!1;(1);((1));( 1 );1 && 1;1||0;0 || 1;defined(HOME);defined(HOME) && 1;streq(a,a);\
        streq(,);strneq(a,b);strstr(abc,b);strstr(abc,);version_atleast(3.4);version_atleast(3.5-dev5);\
        version_before(3.5);version_before(3.6);version_atleast(x);version_atleast();version_atleast(3);\
        version_atleast(3.5-dev);version_atleast(3.4.1-2);openssl_version_atleast(1.1.1);\
        openssl_version_atleast(1.1.1a);openssl_version_atleast(1.1.1-beta1);ssllib_name_startswith(OpenSSL);\
        ssllib_name_startswith();enabled(EPOLL);streq(\"a)\",\"a)\");streq(a b,a b);99999999999999999999;0x1;\
        streq(a,'a');!defined(NOPE);feature(THREAD)";
    for text in truths.split(';') {
        assert_eq!(value(text), Ok(true), "{text}");
    }
    let falsehoods = ";0;00;!1;! 1;1&&0;0||1&&0;(0||1)&&0;!(0||1);defined(NOPE);defined( HOME );defined();defined;\
        feature(NOPE);feature();streq(a,b);streq(a, a);strstr(,a);version_atleast(3.5);version_atleast(3.5-dev6);\
        version_atleast(3.5-dev5-1);version_atleast(3.5.0);version_atleast(3.5-rc1);version_atleast(3.5-x);\
        ssllib_name_startswith(openssl);fips_mode();fips_mode;enabled(NOPE);enabled(epoll);enabled()";
    for text in falsehoods.split(';') {
        assert_eq!(value(text), Ok(false), "{text}");
    }
}

#[test]
fn errors_name_the_place() {
    let cases = [
        ("1a", 1, "unexpected character 'a' at the end of conditional expression '1a'"),
        ("a", 0, "unparsable conditional expression 'a'"),
        ("!", 0, "unparsable conditional expression '!'"),
        ("(1", 0, "expected ')' after conditional expression '(1'"),
        ("()", 1, "unparsable conditional expression ')'"),
        ("1 & 1", 2, "unexpected character '&' at the end of conditional expression '1 & 1'"),
        ("1&&", 1, "unparsable conditional expression '&&'"),
        ("1&&&&1", 3, "unparsable conditional expression '&&1'"),
        ("0||", 1, "unparsable conditional expression '0||'"),
        ("0 && foo", 5, "unparsable conditional expression 'foo'"),
        ("1 || (foo", 6, "unparsable conditional expression 'foo'"),
        ("defined(", 8, "expected ')' in argument 1 of predicate 'defined' used in conditional expression"),
        (
            "defined(H,x)",
            9,
            "expected ')' before ',x)' in argument 1 of predicate 'defined' used in conditional expression",
        ),
        (
            "streq(a,a,a)",
            9,
            "expected ')' before ',a)' in argument 1 of predicate 'streq' used in conditional expression",
        ),
        (
            "fips_mode(x)",
            10,
            "expected ')' before 'x)' in argument 0 of predicate 'fips_mode' used in conditional expression",
        ),
        (
            "streq(a)",
            7,
            "missing arguments (got 1/2), type 'string' expected in argument 1 of predicate 'streq' used in conditional expression",
        ),
        (
            "openssl_version_atleast(9)",
            26,
            "invalid argument to conditional expression predicate 'openssl_version_atleast': '9'",
        ),
        (
            "awslc_api_before(9)",
            19,
            "invalid argument to conditional expression predicate 'awslc_api_before': '9'",
        ),
    ];
    for (text, at, message) in cases {
        assert_eq!(value(text), Err(ConditionError { text: message.into(), at }), "{text}");
    }
    assert!(value(&"(".repeat(100_000)).is_err());
    assert_eq!(value(&format!("{}1", "!".repeat(100_000))), Ok(true));
}
