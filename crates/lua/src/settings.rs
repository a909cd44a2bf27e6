//! What `global` says of Lua: `tune.lua.*`, `lua-prepend-path` (manual, section 3.2).
//!
//! `compile` checks the words; here is what they mean, because scripts run before anything is compiled.

use std::time::Duration;

use mlua::StdLib;

/// When what scripts log goes to standard error as well (`tune.lua.log.stderr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stderr {
    /// Always.
    On,
    /// Where nobody else is told.
    Auto,
    /// Never.
    Off,
}

/// What scripts may do and how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `tune.lua.bool-sample-conversion`; `None`: it was not said.
    pub normal_bools: Option<bool>,
    /// `tune.lua.burst-timeout`; `None`: no limit.
    pub burst: Option<Duration>,
    /// `tune.lua.session-timeout`: actions, fetches, converters.
    pub session: Option<Duration>,
    /// `tune.lua.service-timeout`: services and commands.
    pub service: Option<Duration>,
    /// `tune.lua.task-timeout`: tasks.
    pub task: Option<Duration>,
    /// `tune.lua.forced-yield`: instructions between two looks at the clock; `None`: the default.
    pub forced_yield: Option<u32>,
    /// `tune.lua.log.loggers`.
    pub loggers: bool,
    /// `tune.lua.log.stderr`.
    pub stderr: Stderr,
    /// `tune.lua.maxmem`, in bytes; 0: no limit.
    pub maxmem: usize,
    /// `tune.lua.openlibs`.
    pub libs: StdLib,
    /// Whether there is a `debug` table; ours has only what can do no harm.
    pub debug: bool,
    /// `lua-prepend-path`, in order: `path` or `cpath`, and the pattern.
    pub paths: Vec<(&'static str, String)>,
    /// The number of the load that the scripts belong to.
    pub load: u64,
    /// Programs may be started (`insecure-fork-wanted`).
    pub fork: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            normal_bools: None,
            burst: Some(Duration::from_secs(1)),
            session: Some(Duration::from_secs(4)),
            service: Some(Duration::from_secs(4)),
            task: None,
            forced_yield: None,
            loggers: true,
            stderr: Stderr::Auto,
            maxmem: 0,
            libs: all(),
            debug: true,
            paths: Vec::new(),
            load: 0,
            fork: false,
        }
    }
}

fn all() -> StdLib {
    NAMED.iter().fold(StdLib::COROUTINE, |all, (_, lib)| all | *lib)
}

const NAMED: &[(&str, StdLib)] = &[
    ("table", StdLib::TABLE),
    ("io", StdLib::IO),
    ("os", StdLib::OS),
    ("string", StdLib::STRING),
    ("math", StdLib::MATH),
    ("utf8", StdLib::UTF8),
    ("package", StdLib::PACKAGE),
];

/// A time with its unit, milliseconds without one; 0 is no limit.
fn time(word: &str) -> Option<Option<Duration>> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let micros = match word.get(digits.len()..)? {
        "us" => number,
        "" | "ms" => number.checked_mul(1000)?,
        "s" => number.checked_mul(1_000_000)?,
        "m" => number.checked_mul(60_000_000)?,
        "h" => number.checked_mul(3_600_000_000)?,
        "d" => number.checked_mul(86_400_000_000)?,
        _ => return None,
    };
    Some((micros > 0).then_some(Duration::from_micros(micros)))
}

impl Settings {
    /// Takes one line. What can't be read is left: `compile` says so.
    pub fn line(&mut self, keyword: &str, words: &[&str]) {
        let word = words.first().copied().unwrap_or_default();
        let set = |place: &mut Option<Duration>| {
            if let Some(time) = time(word) {
                *place = time;
            }
        };
        match keyword {
            "tune.lua.bool-sample-conversion" => {
                self.normal_bools = match word {
                    "normal" => Some(true),
                    "pre-3.1-bug" => Some(false),
                    _ => self.normal_bools,
                }
            }
            "tune.lua.burst-timeout" => set(&mut self.burst),
            "tune.lua.session-timeout" => set(&mut self.session),
            "tune.lua.service-timeout" => set(&mut self.service),
            "tune.lua.task-timeout" => set(&mut self.task),
            "tune.lua.forced-yield" => self.forced_yield = word.parse().ok().filter(|n| *n > 0),
            "tune.lua.log.loggers" => self.loggers = word != "off",
            "tune.lua.log.stderr" => {
                self.stderr = match word {
                    "on" => Stderr::On,
                    "off" => Stderr::Off,
                    _ => Stderr::Auto,
                }
            }
            "tune.lua.maxmem" => {
                self.maxmem = word.parse::<usize>().unwrap_or(0).saturating_mul(1 << 20);
            }
            "tune.lua.openlibs" => self.open(word),
            "insecure-fork-wanted" => self.fork = true,
            "lua-prepend-path" if !word.is_empty() => match words.get(1).copied() {
                None | Some("path") => self.paths.push(("path", word.into())),
                Some("cpath") => self.paths.push(("cpath", word.into())),
                Some(_) => {}
            },
            _ => {}
        }
    }

    fn open(&mut self, word: &str) {
        let named = |name: &str| word.split(',').any(|lib| lib == name);
        self.debug = named("all") || named("debug");
        self.libs = match named("all") {
            true => all(),
            false => NAMED
                .iter()
                .filter(|(name, _)| named(name))
                .fold(StdLib::COROUTINE, |libs, (_, lib)| libs | *lib),
        };
    }

    /// How samples reach scripts.
    pub fn form(&self) -> crate::value::Form {
        if self.normal_bools == Some(true) { crate::value::Form::Plain } else { crate::value::Form::Old }
    }
}
