//! The command line (management guide, chapter 3). The same words as HAProxy's mean the same.

use std::path::PathBuf;

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
pub struct Args {
    /// `-f` and what follows `--`, in order.
    pub files: Vec<PathBuf>,
    /// `-C`.
    pub folder: Option<PathBuf>,
    /// `-c`.
    pub check: bool,
    /// `-cc`.
    pub condition: Option<String>,
    /// `-V`.
    pub verbose: bool,
    /// `-q`.
    pub quiet: bool,
    /// `-d` or `-db`: stay in the foreground.
    pub foreground: bool,
    /// `-D`.
    pub daemon: bool,
    /// `-W`, `-Ws`.
    pub master_worker: bool,
    /// `-Ws`: the service manager wants to be told when the start is over.
    pub notify: bool,
    /// `-S`: where the master's socket would listen.
    pub master_socket: Option<String>,
    /// `-n`.
    pub maxconn: Option<u32>,
    /// `-N`.
    pub proxy_maxconn: Option<u32>,
    /// `-m`, MB.
    pub memory: Option<u64>,
    /// `-p`.
    pub pidfile: Option<PathBuf>,
    /// `-L`.
    pub localpeer: Option<String>,
    /// `-sf`: old processes to stop softly.
    pub finish: Vec<i32>,
    /// `-st`: old processes to stop at once.
    pub terminate: Vec<i32>,
    /// `-x`.
    pub sockets_from: Option<PathBuf>,
    /// `-dC` with its key, 0 for plain text, and whether lines are numbered.
    pub dump: Option<(u32, bool)>,
    /// `-dK` with its classes.
    pub keywords: Option<String>,
    /// `-dW`.
    pub zero_warning: bool,
    /// `-dD`.
    pub diagnostics: bool,
    /// `-d`: events are told.
    pub debug: bool,
    /// `-dS`.
    pub no_splice: bool,
    /// `-dF`: no pipes either.
    pub no_fast_forward: bool,
    /// `-dZ`: neither.
    pub no_zero_copy: bool,
    /// `-dG`.
    pub no_getaddrinfo: bool,
    /// `-4`: resolvers ask for addresses of IPv4 only.
    pub ipv4_only: bool,
    /// `-dV`.
    pub trust_servers: bool,
    /// `-dI`.
    pub fork_wanted: bool,
    /// `-dc`.
    pub processors: bool,
    /// `-dA` with its file.
    pub archive: Option<PathBuf>,
    /// `-dT`.
    pub no_ktls: bool,
    /// `-dR`.
    pub no_reuseport: bool,
    /// `-dr`.
    pub ignore_resolution: bool,
    /// `-dt` with what follows it.
    pub traces: Option<String>,
    /// `-dL`.
    pub libraries: bool,
    /// Remarks about words that were read but can't be obeyed, each a whole line of text.
    pub remarks: Vec<String>,
    /// What was understood otherwise than it may have been meant, each a whole line of text.
    pub notices: Vec<String>,
    /// What has no effect here, and why.
    pub idle: Vec<(String, &'static str)>,
    /// `-v`, `-vv`, and their short forms.
    pub version: Option<Version>,
    /// `help WORD...`: the words, with a blank between them.
    pub help: Option<String>,
}

/// How much of the version is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `-v`.
    Plain,
    /// `-vv`.
    Full,
    /// `-vq`.
    Quiet,
    /// `-vqs`.
    Short,
    /// `-vqb`.
    Branch,
}

/// The words were wrong.
#[derive(Debug)]
pub enum Refused {
    /// The usage is to be shown, behind what was wrong if it can be said.
    Usage(Option<String>),
    /// What was wrong says all.
    Said(String),
}

/// Reads the words behind the program's name.
///
/// # Errors
/// The words are wrong.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Args, Refused> {
    let mut args = Args::default();
    let mut words = words.peekable();
    if words.peek().is_some_and(|w| w == "help") {
        words.next();
        args.help = Some(words.collect::<Vec<_>>().join(" "));
        return Ok(args);
    }
    while let Some(word) = words.next() {
        if word == "--" {
            args.files.extend(words.by_ref().map(PathBuf::from));
            break;
        }
        if !word.starts_with('-') || word == "-" {
            return Err(Refused::Usage(None));
        }
        if flag(&mut args, &word) {
            continue;
        }
        match word.as_str() {
            "-dt" => args.traces = Some(words.next_if(|w| !w.starts_with('-')).unwrap_or_default()),
            "-sf" => pids(&word, &mut words, &mut args.finish)?,
            "-st" => pids(&word, &mut words, &mut args.terminate)?,
            _ => {
                let value = words.next().ok_or_else(|| missing(&word))?;
                valued(&mut args, &word, value)?;
            }
        }
    }
    // Verbose takes back quiet, whichever came first.
    args.quiet &= !args.verbose;
    Ok(args)
}

/// What is said of a word without its value.
fn missing(word: &str) -> Refused {
    match word {
        "-f" | "-C" | "-cc" | "-n" | "-N" | "-m" | "-p" | "-L" | "-S" => {
            Refused::Usage(Some(format!("'{word}' needs a value behind it")))
        }
        "-x" => Refused::Usage(Some("Unix socket path expected with the -x flag".into())),
        _ => Refused::Usage(None),
    }
}

/// Words that stand alone; whether this was one.
fn flag(args: &mut Args, word: &str) -> bool {
    match word {
        "-c" => args.check = true,
        "-V" => args.verbose = true,
        "-q" => args.quiet = true,
        "-db" => args.foreground = true,
        "-d" => (args.foreground, args.debug) = (true, true),
        "-D" => args.daemon = true,
        "-W" => args.master_worker = true,
        "-Ws" => (args.master_worker, args.notify) = (true, true),
        "-dL" => args.libraries = true,
        "-dW" => args.zero_warning = true,
        "-dD" => args.diagnostics = true,
        "-dS" => args.no_splice = true,
        "-dT" => args.no_ktls = true,
        "-dR" => args.no_reuseport = true,
        "-dr" => args.ignore_resolution = true,
        w if w.starts_with("-vv") => args.version = Some(Version::Full),
        "-vq" => args.version = Some(Version::Quiet),
        "-vqs" => args.version = Some(Version::Short),
        "-vqb" => args.version = Some(Version::Branch),
        "-dV" => args.trust_servers = true,
        "-dF" => args.no_fast_forward = true,
        "-dZ" => args.no_zero_copy = true,
        "-dI" => args.fork_wanted = true,
        "-dc" => args.processors = true,
        w if w.starts_with("-dA") => args.archive = Some(w[3..].into()),
        "-4" => args.ipv4_only = true,
        w if w.starts_with("-dC") => {
            let key = w[3..].split(',').next().and_then(|k| k.parse().ok()).unwrap_or(0);
            args.dump = Some((key, w[3..].split(',').any(|word| word == "line")));
            // Whoever looks at a configuration does not want it to run.
            args.check = true;
        }
        w if w.starts_with("-dt") && w.len() > 3 => args.traces = Some(w[3..].to_owned()),
        w if w.starts_with("-v") => args.version = Some(Version::Plain),
        w if w.starts_with("-dK") => args.keywords = Some(w[3..].to_owned()),
        w => return idle(args, w) || joined(args, w),
    }
    true
}

/// A word of one letter with more behind it, of which HAProxy looks at the first only (`-Ds` of old init
/// scripts); whether this was one. That the rest is not obeyed is said.
fn joined(args: &mut Args, word: &str) -> bool {
    let short = word.get(..2).filter(|_| word != "-cc");
    let Some(short @ ("-c" | "-V" | "-q" | "-D" | "-W" | "-4")) = short else { return false };
    args.notices.push(format!("'{word}' is taken for '{short}': options of one letter can't be joined."));
    flag(args, short)
}

/// Words that change nothing; whether this was one, of which the reason is kept.
fn idle(args: &mut Args, word: &str) -> bool {
    let why = match word {
        "-dG" => {
            args.no_getaddrinfo = true;
            "Names are always resolved with getaddrinfo."
        }
        "-de" | "-dk" | "-dp" | "-dv" => "epoll is the only poller.",
        w if w.starts_with("-dM") => {
            "It is about the allocator of HAProxy; memory is never read here before it is written."
        }
        _ => return false,
    };
    args.idle.push((word.to_owned(), why));
    true
}

/// Words with a value.
fn valued(args: &mut Args, word: &str, value: String) -> Result<(), Refused> {
    match word {
        "-f" => args.files.push(value.into()),
        "-C" => args.folder = Some(value.into()),
        "-cc" => args.condition = Some(value),
        "-n" => args.maxconn = number(args, word, &value),
        "-N" => args.proxy_maxconn = number(args, word, &value),
        "-m" => args.memory = number(args, word, &value).map(u64::from),
        "-p" => args.pidfile = Some(value.into()),
        "-L" => args.localpeer = Some(value),
        "-x" => {
            if args.sockets_from.replace(value.into()).is_some() {
                args.remarks.push("-x option already set, overwriting the value".to_owned());
            }
        }
        "-S" => args.master_socket = Some(value),
        _ => return Err(Refused::Usage(Some(format!("unknown option '{word}'")))),
    }
    Ok(())
}

/// A number that is not zero. What is none is passed over, as HAProxy does, but not in silence.
fn number(args: &mut Args, word: &str, value: &str) -> Option<u32> {
    let number = value.parse().ok();
    if number.is_none() {
        args.remarks.push(format!("'{word} {value}' is passed over: '{value}' is not a number."));
    }
    number.filter(|n| *n > 0)
}

/// The processes that stand behind `-sf` or `-st`. Only what is above zero is one: `kill` takes 0 and less
/// for many.
fn pids(
    option: &str,
    words: &mut std::iter::Peekable<impl Iterator<Item = String>>,
    out: &mut Vec<i32>,
) -> Result<(), Refused> {
    while let Some(word) = words.next_if(|w| !w.starts_with('-')) {
        // `$(cat pidfile)` within quotes comes with blanks.
        let word = word.trim();
        let number = word.strip_prefix('+').unwrap_or(word);
        let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
        if !rest.is_empty() {
            let rest = rest.trim_start();
            let why = format!("{option} option: some bytes unconsumed in PID list {{{rest}}}");
            return Err(Refused::Said(why));
        }
        match number.parse() {
            Ok(pid) if pid > 0 => out.push(pid),
            _ => return Err(Refused::Usage(None)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Args, Refused> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn the_words_that_init_scripts_use() {
        let a = of("-D -f /etc/a.cfg -f /etc/conf.d -p /run/x.pid -sf 12 13").unwrap();
        assert_eq!(a.files.len(), 2);
        assert_eq!(a.finish, [12, 13]);
        assert!(a.daemon && !a.check);
        let a = of("-c -V -f x -- y z").unwrap();
        assert!(a.check && a.verbose && a.files.len() == 3);
        assert_eq!(of("-dC12345 -f x").unwrap().dump, Some((12345, false)));
        assert_eq!(of("-dC,line -f x").unwrap().dump, Some((0, true)));
        assert_eq!(of("-dKall -q -c -f x").unwrap().keywords.as_deref(), Some("all"));
    }

    #[test]
    fn what_is_wrong_shows_the_usage() {
        assert!(of("-f").is_err());
        assert!(of("--nonsense x").is_err());
        assert!(of("file.cfg").is_err());
        assert!(matches!(of("-p"), Err(Refused::Usage(Some(text))) if text.contains("-p")));
    }

    #[test]
    fn processes_that_shall_go_are_numbers_above_zero() {
        let quoted = ["-sf", "12 ", "-st", "\n7\n", "-D"].map(str::to_owned);
        let a = parse(quoted.into_iter()).unwrap();
        assert_eq!((a.finish, a.terminate, a.daemon), (vec![12], vec![7], true));
        for wrong in ["-sf 0", "-sf -1", "-st 99999999999", "-sf 00"] {
            assert!(matches!(of(wrong), Err(Refused::Usage(_))), "{wrong}");
        }
        let Err(Refused::Said(why)) = of("-sf 1,2") else { panic!("taken") };
        assert_eq!(why, "-sf option: some bytes unconsumed in PID list {,2}");
    }

    #[test]
    fn the_first_letter_of_joined_words_counts() {
        let a = of("-Ds -cV -f x").unwrap();
        assert!(a.daemon && a.check && !a.verbose);
        assert_eq!(a.notices.len(), 2);
        assert_eq!(of("-vvv").unwrap().version, Some(Version::Full));
    }

    #[test]
    fn odd_words_that_haproxy_takes_are_taken() {
        let a = of("-n many -m 64 -vz -dMno-merge -q -V -S /run/m.sock").unwrap();
        assert_eq!((a.maxconn, a.memory, a.version), (None, Some(64), Some(Version::Plain)));
        assert_eq!((a.remarks.len(), a.idle.len()), (1, 1));
        assert!(!a.quiet && a.master_socket.is_some());
    }
}
