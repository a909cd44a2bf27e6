//! TLS words of `bind` and `server` lines and of certificate lists.
//!
//! [`words`] understands single settings, the same for all places; [`stores`] and [`list`] fill the store of
//! the `tls` crate. What handshakes run is built by `assemble`. Messages are HAProxy's.

pub(crate) mod list;
pub(crate) mod stores;
pub(crate) mod words;

use syntax::{Diagnostic, Diagnostics, Span, Style};
use tls::store::Store;

/// Tells why keys stayed closed, and what of the files can't be used; what that leads to is told by who needs
/// them.
pub(crate) fn say_closed(store: &Store, span: Span, notes: &mut Diagnostics) {
    for text in store.phrases().complaints() {
        notes.push(Diagnostic::alert(span, text).styled(Style::Plain).tolerated());
    }
    for text in store.warnings() {
        notes.push(Diagnostic::warning(span, text).styled(Style::Plain));
    }
}
