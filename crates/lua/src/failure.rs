//! Why scripts fail, and how that is told.

/// How traces name what is ours.
pub const PRELUDE: &str = "harrier.lua";

/// Why a script failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It waited where it may not.
    Yield,
    /// It ran for too long in all.
    Timeout,
    /// It ran for too long in one go.
    Burst,
    /// Its configuration is over.
    Over,
    /// It used too much memory.
    Memory,
    /// It raised an error: what it says, and where it comes from.
    Runtime(String, String),
}

/// What is said of an error of Lua's, without the trace.
pub fn words(error: &mlua::Error) -> String {
    match failure(error) {
        Failure::Runtime(text, _) => text,
        Failure::Memory => "not enough memory".into(),
        other => format!("{other:?}"),
    }
}

/// What an error of Lua's means.
pub fn failure(error: &mlua::Error) -> Failure {
    use mlua::Error as E;
    let text = match error {
        E::CallbackError { cause, .. } | E::WithContext { cause, .. } => return failure(cause),
        E::MemoryError(_) => return Failure::Memory,
        E::RuntimeError(text) => text.clone(),
        E::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    };
    let (text, trace) = text.split_once("\nstack traceback:").unwrap_or((&text, ""));
    if text.contains("attempt to yield from outside a coroutine") {
        return Failure::Yield;
    }
    Failure::Runtime(text.into(), traced(trace))
}

/// A trace in the words of HAProxy's logs.
fn traced(trace: &str) -> String {
    let lines = trace.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "...");
    let lines: Vec<&str> = lines.collect();
    // What is ours is left out, with the mark of a call in its place; to a script our methods are those of C.
    let is_ours = |line: &str| line.contains(PRELUDE) || line.contains("harrier.");
    let mut frames = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        let after_ours = at.checked_sub(1).and_then(|at| lines.get(at)).is_some_and(|line| is_ours(line));
        if is_ours(line) {
            let method = line.split_once("in method '").filter(|_| !next.is_empty() && !is_ours(next));
            frames.extend(method.map(|(_, name)| format!("[C]: in method '{name}")));
        } else {
            let mark = after_ours && *line == "(...tail calls...)";
            let raised = is_ours(next) && *line == "[C]: in function 'error'";
            frames.extend((!mark && !raised).then(|| (*line).to_owned()));
        }
    }
    let frames = frames.into_iter();
    let frames = frames.map(|line| {
        let line = line.replace("in main chunk", "in function line 0");
        match line.split_once("in function <") {
            Some((place, from)) => {
                let number = from.trim_end_matches('>').rsplit(':').next().unwrap_or_default().to_owned();
                format!("{place}in function line {number}")
            }
            None => line.replace("in function '", "in global '"),
        }
    });
    let frames: Vec<_> = frames.collect();
    // A call in the place of its caller leaves no trace of that one.
    frames.join(", ").replace(", (...tail calls...)", " ...")
}

impl Failure {
    /// What the log says of it: `what` names the function, `number` the state.
    pub fn told(&self, what: &str, number: usize) -> String {
        match self {
            Failure::Yield if what.starts_with("Lua converter") => {
                format!("{what}: yield functions like core.tcp() or core.sleep() are not allowed.")
            }
            Failure::Yield => format!("{what}: yield not allowed."),
            Failure::Timeout => format!("{what}: execution timeout."),
            Failure::Burst => format!("{what}: burst timeout."),
            Failure::Memory => format!("{what}: out of memory error."),
            Failure::Over => format!("{what}: its configuration is over."),
            Failure::Runtime(text, trace) => {
                format!("{what}: [state-id {number}] runtime error: {text} from {trace}.")
            }
        }
    }
}
