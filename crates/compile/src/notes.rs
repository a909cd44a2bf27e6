//! Complaints that several passes make alike.

use syntax::{Diagnostic, Level, Span, Style};

/// A warning about a proxy as a whole, which HAProxy prints without a place.
pub(crate) fn remark(span: Span, text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Level::Warning, span, text).styled(Style::Bare)
}

/// An error about a proxy as a whole, which HAProxy prints without a place.
pub(crate) fn refusal(span: Span, text: impl Into<String>) -> Diagnostic {
    Diagnostic::alert(span, text).styled(Style::Bare)
}

/// What the system says, without Rust's number behind it.
pub(crate) fn os_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
