//! From the command line's `-f` and `--` arguments to files in memory (management guide, chapter 3).

use crate::diagnostics::{Diagnostic, Level};
use crate::source::Source;
use base::outside;
use std::io;

/// Reads files and folders in the order given. Of a folder, all files whose names end in `.cfg` and do not
/// begin with a dot are read, in the order of their bytes. The first one that can't be read ends it.
pub fn load<'p>(paths: impl IntoIterator<Item = &'p str>) -> Result<Vec<Source>, Diagnostic> {
    let mut sources = Vec::new();
    for path in paths {
        load_one(path, &mut sources).map_err(|error| refusal(path, &error))?;
    }
    Ok(sources)
}

fn load_one(path: &str, sources: &mut Vec<Source>) -> io::Result<()> {
    if !outside::is_folder(path) {
        sources.push(Source::new(path, outside::read(path)?));
        return Ok(());
    }
    let mut names = Vec::new();
    for name in outside::names(path)? {
        let full = format!("{path}/{name}");
        if name.ends_with(".cfg") && !name.starts_with('.') && outside::is_file(&full) {
            names.push(full);
        }
    }
    names.sort_unstable();
    for name in names {
        let bytes = outside::read(&name)?;
        sources.push(Source::new(name, bytes));
    }
    Ok(())
}

fn refusal(path: &str, error: &io::Error) -> Diagnostic {
    let reason = error.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    Diagnostic::plain(Level::Alert, format!("Cannot open configuration file/directory {path} : {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_its_cfg_files_in_order() {
        let folder = std::env::temp_dir().join(format!("harrier-inputs-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sub.cfg")).expect("a folder");
        for name in ["b.cfg", "a.cfg", "B.cfg", ".h.cfg", "x.conf"] {
            std::fs::write(folder.join(name), name).expect("a file");
        }
        let path = folder.to_str().expect("a name");
        let sources = load([path, &format!("{path}/x.conf")]).expect("all can be read");
        let names: Vec<&str> =
            sources.iter().map(|s| s.name().rsplit('/').next().unwrap_or_default()).collect();
        assert_eq!(names, ["B.cfg", "a.cfg", "b.cfg", "x.conf"]);
        let missing = load(["/nope/x.cfg"]).expect_err("no such file");
        assert_eq!(
            missing.text,
            "Cannot open configuration file/directory /nope/x.cfg : No such file or directory"
        );
        std::fs::remove_dir_all(&folder).expect("a folder to remove");
    }
}
