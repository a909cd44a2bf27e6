//! The file of a ring (`backing-file`): each line is written when it comes, where a reader finds it after
//! whatever end of the process.
//!
//! HAProxy maps the file into its memory, and dies of a file system that fills up. Here a write that fails
//! costs its line in the file, is told, and is tried again after a while.

use std::fs::{File, OpenOptions, rename};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rt::Mono;
use wire::ring_file::{Cursor, MAGIC};

/// How long a file that failed is left alone.
const REST: Duration = Duration::from_secs(1);

/// A file that lines are written to.
#[derive(Debug)]
pub(super) struct RingFile {
    path: PathBuf,
    file: File,
    cursor: Cursor,
    record: Vec<u8>,
    /// Not before then is anything written.
    rests: Option<Mono>,
    /// What happened and was not told yet.
    trouble: Option<String>,
    /// Lines that are missing in the file.
    lost: u64,
}

impl RingFile {
    /// Makes the file anew; one that is there and not empty is kept beside it as `.bak`.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(path: &Path, size: usize) -> io::Result<RingFile> {
        if path.metadata().is_ok_and(|known| known.len() > 0) {
            let mut kept = path.as_os_str().to_owned();
            kept.push(".bak");
            // Without that right the lines begin anew in the same file, as in HAProxy.
            let _ = rename(path, kept);
        }
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let size = size as u64;
        file.set_len(size)?;
        let mut made = RingFile {
            path: path.into(),
            file,
            cursor: Cursor::new(size),
            record: Vec::new(),
            rests: None,
            trouble: None,
            lost: 0,
        };
        let begun = made.file.write_all_at(MAGIC, 0);
        made.note(begun);
        Ok(made)
    }

    /// Writes a line.
    pub fn write(&mut self, number: u64, line: &[u8]) {
        if self.rests.is_some_and(|until| rt::now() < until) {
            self.lost += 1;
            return;
        }
        if let Some(at) = self.cursor.place(number, line, &mut self.record) {
            let written = self.file.write_all_at(&self.record, at);
            self.note(written);
        }
    }

    /// Remembers what is to be told: the first of several failures, and that they are over.
    fn note(&mut self, written: io::Result<()>) {
        let path = self.path.display();
        match written {
            Err(e) => {
                if self.rests.is_none() {
                    self.trouble = Some(format!("cannot write to its backing file '{path}': {e}"));
                }
                self.rests = Some(rt::now() + REST);
                self.lost += 1;
            }
            Ok(()) if self.rests.take().is_some() => {
                let lost = std::mem::take(&mut self.lost);
                self.trouble = Some(format!(
                    "writes to its backing file '{path}' again, {lost} lines are missing there"
                ));
            }
            Ok(()) => {}
        }
    }

    /// What is to be told, once.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}
