//! The service `prometheus-exporter`: statistics as metrics of Prometheus.
//!
//! Names, labels and types are HAProxy's (the README of its exporter, and what it answers); what figures mean
//! and how they are read stands in the tables of statistics ([`crate::stats::table`], [`crate::info`]), to
//! which [`table`] adds what a column is called here. A scrape ([`scrape`]) is written piece by piece while
//! it is sent: all lines of a metric stand together, so it walks over all objects once for each.

mod asked;
mod scrape;
mod table;

#[cfg(test)]
mod tests;

use engine::worker::service::{Answer, Request, Service};

use asked::Asked;
use scrape::Scrape;

/// The service called `prometheus-exporter`.
#[derive(Debug, Default)]
pub struct Exporter;

/// The form of a scrape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// The text format 0.0.4 of Prometheus.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// OpenMetrics for those who ask for it. This is ours alone: HAProxy knows the text format only.
    fn wanted(accept: Option<&[u8]>) -> Format {
        let accept = accept.unwrap_or_default();
        let kind = b"application/openmetrics-text";
        let asks = |range: &[u8]| {
            let range = range.trim_ascii();
            range.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind))
                && !is_refused(range)
        };
        if accept.split(|b| *b == b',').any(asks) { Format::OpenMetrics } else { Format::Text }
    }

    fn content_type(self) -> &'static [u8] {
        match self {
            Format::Text => b"text/plain; version=0.0.4",
            Format::OpenMetrics => b"application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Whether a media range says `q=0`.
fn is_refused(range: &[u8]) -> bool {
    range.split(|b| *b == b';').map(<[u8]>::trim_ascii).any(|parameter| {
        let weight = parameter.strip_prefix(b"q=").or(parameter.strip_prefix(b"Q="));
        weight.is_some_and(|w| !w.is_empty() && w.iter().all(|b| matches!(b, b'0' | b'.')))
    })
}

impl Service for Exporter {
    fn name(&self) -> &'static str {
        "<PROMEX>"
    }

    /// Whatever the method, metrics are the answer, as in HAProxy.
    fn answer(&self, request: &Request<'_>) -> Answer {
        let target = wire::uri::path_and_query(request.txn.req.target());
        let Some(asked) = Asked::parse(target) else {
            return Answer { status: 400, refused: true, ..Answer::default() };
        };
        let format = Format::wanted(request.txn.req.first("accept"));
        crate::shm::refresh(&request.worker.shared);
        let scrape = Scrape::new(request.worker.shared.clone(), asked, format);
        Answer {
            status: 200,
            headers: vec![
                ("cache-control", b"no-cache".to_vec()),
                ("content-type", format.content_type().to_vec()),
            ],
            rest: Some(Box::new(scrape)),
            ..Answer::default()
        }
    }
}
