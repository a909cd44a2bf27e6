//! What keeps a response in a cache while it goes to the client (`cache-store`, manual, section 9.4).

use lang::filter::Gate;
use model::cached::Storing;
use wire::head::Head;

/// Sees the payload of a response that is to be kept. One that breaks off is dropped with its stream, and
/// nothing was kept of it.
pub struct Keep(Option<Box<Storing>>);

impl Keep {
    /// Begins.
    pub fn new(storing: Box<Storing>) -> Keep {
        Keep(Some(storing))
    }
}

/// The response has come whole.
pub fn finish(storing: Storing) {
    storing.finish(rt::wall().as_secs());
}

impl Gate for Keep {
    fn passed(&mut self, _: u64, bytes: &[u8]) {
        self.0.take_if(|storing| !storing.writer.push(bytes));
    }

    fn trailers(&mut self, trailers: &Head) {
        self.0.take_if(|storing| !storing.add_trailers(trailers));
    }

    fn ended(&mut self) {
        if let Some(storing) = self.0.take() {
            finish(*storing);
        }
    }
}
