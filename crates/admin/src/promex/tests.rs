//! What is asked for, and that the table of metrics fits that of statistics.

use super::Format;
use super::asked::{Asked, Scope};
use super::table::{Form, METRICS, PROCESS};
use crate::info;
use crate::stats::table::COLUMNS;

#[test]
fn scopes_count_in_their_order() {
    let scopes = |query: &str| {
        let asked = Asked::parse(format!("/metrics?{query}").as_bytes())?;
        Some([Scope::Global, Scope::Frontend, Scope::Server].map(|s| asked.wants_scope(s)))
    };
    assert_eq!(scopes(""), Some([true; 3]));
    assert_eq!(scopes("scope="), Some([false; 3]));
    assert_eq!(scopes("scope=*&scope="), Some([false; 3]));
    assert_eq!(scopes("scope=&scope=global"), Some([true, false, false]));
    assert_eq!(scopes("scope=frontend&scope=%73erver"), Some([false, true, true]));
    assert_eq!(scopes("SCOPE=x&other"), Some([true; 3]));
    for wrong in
        ["scope", "scope=x", "scope=global;", "scope=%", "scope=%4", "x%zz", "metrics", "scope=GLOBAL"]
    {
        assert_eq!(scopes(wrong), None, "{wrong}");
    }
}

#[test]
fn names_are_wanted_or_not() {
    let wants = |query: &str| {
        let asked = Asked::parse(format!("/m?{query}").as_bytes()).unwrap();
        [asked.wants("a"), asked.wants("b")]
    };
    assert_eq!(wants("metrics="), [true, true]);
    assert_eq!(wants("metrics=a"), [true, false]);
    assert_eq!(wants("metrics=-a"), [false, true]);
    assert_eq!(wants("metrics=-a,a"), [true, false]);
    assert_eq!(wants("metrics=a&metrics=-a"), [false, false]);
    assert_eq!(wants("metrics=a%2Cb"), [true, true]);
    assert_eq!(wants("metrics=-#metrics=a"), [true, true]);
}

#[test]
fn openmetrics_is_for_those_who_ask() {
    let wanted = |accept: &str| Format::wanted(Some(accept.as_bytes()));
    assert_eq!(Format::wanted(None), Format::Text);
    assert_eq!(wanted("text/plain;version=0.0.4, */*;q=0.1"), Format::Text);
    assert_eq!(
        wanted("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3"),
        Format::OpenMetrics
    );
    assert_eq!(wanted("Application/OpenMetrics-Text; q=0.0"), Format::Text);
}

#[test]
fn metrics_name_columns_in_their_order() {
    let place = |name: &str| COLUMNS.iter().position(|c| c.name == name).expect(name);
    let places: Vec<usize> = METRICS.iter().map(|m| place(m.column)).collect();
    assert!(places.is_sorted());
    for metric in METRICS {
        if let Form::With(other) | Form::SecondsWith(other) = metric.form {
            place(other);
        }
    }
    let unknown = |name: &&str| !info::figures().any(|(known, _)| known == *name);
    let missing: Vec<&str> = PROCESS.iter().map(|(figure, ..)| *figure).filter(unknown).collect();
    assert_eq!(missing, [""; 0]);
}
