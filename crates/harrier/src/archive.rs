//! Archives of files in the format of tar (POSIX.1-1988), for `-dA`: a debugger needs the libraries that a
//! core file was made with.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What files are padded to.
const BLOCK: usize = 512;

/// Writes an archive of these files, without the slash that their paths begin with.
pub fn write(archive: &Path, files: &[String]) -> io::Result<()> {
    let mut out = io::BufWriter::new(File::create(archive)?);
    for path in files {
        // What was deleted or replaced since it was loaded is not there any more.
        let Ok(mut file) = File::open(path) else { continue };
        let facts = file.metadata()?;
        let Some(header) = header(path.trim_start_matches('/'), facts.size(), facts.mtime()) else {
            continue;
        };
        out.write_all(&header)?;
        let length = io::copy(&mut file, &mut out)?;
        out.write_all(&vec![0; length.next_multiple_of(BLOCK as u64) as usize - length as usize])?;
    }
    out.write_all(&[0; 2 * BLOCK])?;
    out.flush()
}

/// The block in front of a file; `None` for a name that is too long.
fn header(name: &str, size: u64, changed: i64) -> Option<[u8; BLOCK]> {
    let mut block = [0u8; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    if name.len() > 100 {
        return None;
    }
    put(0, name.as_bytes());
    put(100, b"0000755\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, format!("{:011o}\0", changed.max(0)).as_bytes());
    // The sum is that of the block with blanks in its place.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    Some(block)
}
