//! Where passphrases come from: a command, asked as seldom as possible.
//!
//! While a configuration is read every passphrase that opened a key is tried on the next one, and only when
//! none fits the command is run again. Once the start is over they are wiped; a key that comes over the
//! runtime API has the command asked anew each time.

use std::collections::HashMap;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use zeroize::Zeroizing;

use super::{Closed, Locked};

/// Longest passphrase; what follows is cut off.
const LONGEST: usize = 1024;
/// Most passphrases that are kept.
const MOST: usize = 1000;

type Phrase = Zeroizing<Vec<u8>>;

/// What is remembered during the start.
#[derive(Default)]
struct Known {
    /// Passphrases that opened a key.
    phrases: Vec<Phrase>,
    /// Files whose keys stayed closed: nobody is asked twice.
    vain: HashMap<Box<str>, Closed>,
}

/// The passphrases of a configuration's keys.
#[derive(Default)]
pub struct Phrases {
    /// `ssl-passphrase-cmd`: program and arguments; empty: none.
    command: Vec<Box<str>>,
    /// `None`: the start is over.
    known: Mutex<Option<Known>>,
    /// What went wrong with the command.
    complaints: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Phrases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Phrases").field("command", &self.command).finish_non_exhaustive()
    }
}

impl Phrases {
    /// Those that a command tells (`ssl-passphrase-cmd`); without words there is none.
    pub fn new(command: &[Box<str>]) -> Phrases {
        Phrases { command: command.into(), known: Mutex::new(Some(Known::default())), ..Phrases::default() }
    }

    /// One that is known without the command (`ca-sign-pass`).
    pub fn learn(&self, phrase: &str) {
        self.keep(Zeroizing::new(phrase.as_bytes().to_vec()));
    }

    fn keep(&self, phrase: Phrase) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_mut().map(|known| &mut known.phrases);
        if let Some(known) = known.filter(|k| k.len() < MOST && !k.contains(&phrase)) {
            known.push(phrase);
        }
    }

    /// The start is over: nothing is kept any more.
    pub fn forget(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What went wrong since this was asked last. Sentences for the administrator.
    pub fn complaints(&self) -> Vec<String> {
        std::mem::take(&mut *self.complaints.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens a key, the DER of which is returned.
    pub(super) fn open(&self, key: &Locked, path: &str) -> Result<Zeroizing<Vec<u8>>, Closed> {
        let (known, vain) = match &*self.known.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(known) => (known.phrases.clone(), known.vain.get(path).copied()),
            None => Default::default(),
        };
        for phrase in &known {
            match key.open(phrase) {
                Ok(der) => return Ok(Zeroizing::new(der)),
                Err(Closed::Wrong) => {}
                Err(other) => return Err(self.told(path, other)),
            }
        }
        if let Some(why) = vain {
            return Err(why);
        }
        let opened = self.ask(path).and_then(|phrase| {
            let der = key.open(&phrase).map_err(|why| self.told(path, why))?;
            self.keep(phrase);
            Ok(Zeroizing::new(der))
        });
        if let (Err(why), Some(known)) =
            (&opened, &mut *self.known.lock().unwrap_or_else(PoisonError::into_inner))
        {
            known.vain.insert(path.into(), *why);
        }
        opened
    }

    fn complain(&self, text: String) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if !complaints.contains(&text) {
            complaints.push(text);
        }
    }

    /// Complains of a key that stays closed.
    pub(super) fn told(&self, path: &str, why: Closed) -> Closed {
        match why {
            Closed::NoPhrase => {}
            Closed::Wrong => {
                self.complain(format!("The passphrase given for '{path}' does not open its key."))
            }
            Closed::Unknown => {
                self.complain(format!(
                    "The private key in '{path}' is encrypted in a way that is not supported."
                ));
            }
        }
        why
    }

    /// Runs the command: its first argument is the file, what it prints is the passphrase.
    fn ask(&self, path: &str) -> Result<Phrase, Closed> {
        let Some((program, args)) = self.command.split_first() else {
            let text =
                "Trying to load a passphrase-protected private key without an 'ssl-passphrase-cmd' defined.";
            self.complain(text.into());
            return Err(Closed::NoPhrase);
        };
        let failed = |why: String| {
            self.complain(format!(
                "'ssl-passphrase-cmd' : {program} gave no passphrase for '{path}': {why}."
            ));
            Closed::NoPhrase
        };
        let mut command = Command::new(&**program);
        command.arg(path).args(args.iter().map(|a| &**a)).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| failed(crate::files::told(&e)))?;
        let mut phrase = Zeroizing::new(Vec::with_capacity(LONGEST));
        let read = match child.stdout.take() {
            Some(from) => from.take(LONGEST as u64).read_to_end(&mut phrase),
            None => Ok(0),
        };
        let status = child.wait().map_err(|e| failed(crate::files::told(&e)))?;
        read.map_err(|e| failed(crate::files::told(&e)))?;
        if !status.success() {
            return Err(failed(status.to_string()));
        }
        Ok(phrase)
    }
}
