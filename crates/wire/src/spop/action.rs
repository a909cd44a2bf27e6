//! What an agent asks for in an ACK frame (`SPOE.txt`, section 3.4).

use super::Status;
use super::data::{Data, Reader};

/// Whose variable is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The process.
    Process,
    /// The client's session.
    Session,
    /// The transaction.
    Transaction,
    /// The request.
    Request,
    /// The response.
    Response,
}

impl Scope {
    fn of(number: u8) -> Option<Scope> {
        Some(match number {
            0 => Scope::Process,
            1 => Scope::Session,
            2 => Scope::Transaction,
            3 => Scope::Request,
            4 => Scope::Response,
            _ => return None,
        })
    }
}

/// One thing to do. Names are without the agent's prefix and may hold any bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Give a variable a value.
    SetVar {
        /// Whose it is.
        scope: Scope,
        /// Its name.
        name: &'a [u8],
        /// The value.
        value: Data<'a>,
    },
    /// Take its value from a variable.
    UnsetVar {
        /// Whose it is.
        scope: Scope,
        /// Its name.
        name: &'a [u8],
    },
}

/// The actions of a payload, in their order. After an error there are no more: the length of what can't be
/// read is not known. HAProxy does what stands before the error and counts none; so should whoever asks.
#[derive(Clone, Debug)]
pub struct Actions<'a> {
    reader: Reader<'a>,
    failed: bool,
}

impl<'a> Actions<'a> {
    /// Those of the payload of an ACK frame.
    pub fn new(payload: &'a [u8]) -> Actions<'a> {
        Actions { reader: Reader::new(payload), failed: false }
    }

    fn read(&mut self) -> Option<Action<'a>> {
        let head = (self.reader.byte()?, self.reader.byte()?);
        let scope = Scope::of(self.reader.byte()?)?;
        let name = self.reader.text()?;
        match head {
            (1, 3) => Some(Action::SetVar { scope, name, value: self.reader.data()? }),
            (2, 2) => Some(Action::UnsetVar { scope, name }),
            _ => None,
        }
    }
}

impl<'a> Iterator for Actions<'a> {
    type Item = Result<Action<'a>, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.is_empty() {
            return None;
        }
        let action = self.read().ok_or(Status::Invalid);
        self.failed = action.is_err();
        Some(action)
    }
}
