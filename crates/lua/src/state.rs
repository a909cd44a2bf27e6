//! A state of Lua with all that scripts find in it.
//!
//! State 0 is shared by all threads; its lock (mlua's own) is held while a script runs, never while one
//! waits. The others belong to one thread each (`lua-load-per-thread`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mlua::{Function, HookTriggers, IntoLuaMulti, Lua, LuaOptions, MultiValue, StdLib, Table, Thread, Value};
use parking_lot::Mutex;

use crate::clock::{TAG, Wake, tick};
use crate::ending::Ending;
use crate::failure::PRELUDE;
use crate::settings::Settings;
use crate::value::{Args, BARE, Bound, Outcome};

/// Coroutines that wait for calls.
const MOST_IDLE: usize = 64;

/// Calls between two looks at the memory of a state.
const CALLS_BETWEEN: u64 = 256;

/// As much memory is little.
const SMALL: usize = 8 << 20;

/// Behind these of Lua's own places stand the folders of distributions.
const OWN_PATH: &str = "/usr/local/lib/lua/5.4/?/init.lua;";
const OWN_CPATH: &str = "/usr/local/lib/lua/5.4/?.so;";

/// A state.
pub struct State {
    /// It.
    pub lua: Lua,
    /// Its number: 0, or that of its thread.
    pub number: usize,
    /// What scripts may do.
    pub settings: Arc<Settings>,
    /// What the prelude made for us.
    pub made: Table,
    /// The end of its configuration.
    pub ending: Ending,
    /// Coroutines that have ended their call and wait for another, with what wakes them.
    pub idle: Mutex<Vec<(Thread, Arc<Wake>)>>,
    /// What such coroutines run.
    serve: Function,
    /// Calls that have ended.
    calls: AtomicU64,
}

/// A number that nobody else has.
pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// A number for a host; the prelude sees by its last bit whether there is HTTP.
pub fn host_id(http: bool) -> u64 {
    next_id() * 2 + u64::from(http)
}

impl State {
    /// An empty state, with these functions bound to it.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(
        number: usize,
        threads: usize,
        settings: Arc<Settings>,
        tables: &[&[Bound]],
    ) -> mlua::Result<State> {
        let lua = open(settings.libs)?;
        lua.set_app_data(settings.clone());
        let every = settings.forced_yield.unwrap_or(match number {
            0 => (10_000 / u32::try_from(threads.max(1)).unwrap_or(1)).max(500),
            _ => 10_000,
        });
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(every), |_, _| tick())?;
        let host = lua.create_table()?;
        for (name, shift, function) in tables.iter().flat_map(|table| table.iter()) {
            host.raw_set(*name, bind(&lua, name, *shift, *function)?)?;
        }
        crate::hot::bind(&lua, &host, &settings)?;
        host.raw_set("thread", number)?;
        host.raw_set("fork", settings.fork)?;
        host.raw_set("debug", settings.debug)?;
        let chunk = lua.load(include_str!("prelude.lua")).set_name(format!("={PRELUDE}"));
        let made: Table = chunk.call((host, TAG))?;
        lua.set_named_registry_value("made", made.clone())?;
        for (kind, path) in &settings.paths {
            if let Ok(package) = lua.globals().get::<Table>("package") {
                let before: String = package.get(*kind)?;
                package.set(*kind, format!("{path};{before}"))?;
            }
        }
        if settings.maxmem > 0 {
            lua.set_memory_limit(settings.maxmem)?;
        }
        let serve = made.raw_get("serve")?;
        Ok(State {
            lua,
            number,
            settings,
            made,
            ending: Ending::default(),
            idle: Mutex::default(),
            serve,
            calls: AtomicU64::new(0),
        })
    }

    /// A state that holds little collects its garbage less often: marking what is alive would cost more than
    /// it frees. One that holds more than that keeps to Lua's own pace.
    fn pace(&self) {
        let pause = if self.lua.used_memory() < SMALL { 800 } else { 200 };
        self.lua.gc_inc(pause, 0, 0);
    }

    /// Keeps a function that will be called again and again; the number by which it is called.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn keep(&self, function: &Function) -> mlua::Result<i64> {
        self.made.raw_get::<Function>("keep")?.call(function)
    }

    /// A coroutine for a call of such a function: one that waits for it, or a new one.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn coroutine(&self) -> mlua::Result<(Thread, Arc<Wake>)> {
        match self.idle.lock().pop() {
            Some(idle) => Ok(idle),
            None => Ok((self.lua.create_thread(self.serve.clone())?, Arc::default())),
        }
    }

    /// Takes a coroutine back that has ended its call.
    pub fn rest(&self, thread: Thread, wake: &Arc<Wake>) {
        if self.calls.fetch_add(1, Relaxed).is_multiple_of(CALLS_BETWEEN) {
            self.pace();
        }
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            // Somebody may still hold what wakes it.
            let wake = if Arc::strong_count(wake) == 1 { wake.clone() } else { Arc::default() };
            idle.push((thread, wake));
        }
    }

    /// What the prelude made: a constructor of objects.
    ///
    /// # Errors
    /// It is not there, or Lua has no memory.
    pub fn make(&self, name: &str, args: impl mlua::IntoLuaMulti) -> mlua::Result<Value> {
        self.made.raw_get::<Function>(name)?.call(args)
    }
}

/// A state with these libraries.
fn open(libs: StdLib) -> mlua::Result<Lua> {
    let lua = rt::lua::open(libs, LuaOptions::new().catch_rust_panics(true));
    if let Ok(package) = lua.globals().get::<Table>("package") {
        let modules = format!(
            "/usr/lib/{}-linux-gnu/lua/5.4/?.so;/usr/lib/lua/5.4/?.so;/usr/lib64/lua/5.4/?.so;",
            std::env::consts::ARCH
        );
        let scripts = "/usr/share/lua/5.4/?.lua;/usr/share/lua/5.4/?/init.lua;";
        for (kind, own, more) in [("path", OWN_PATH, scripts), ("cpath", OWN_CPATH, &modules)] {
            let path: String = package.get(kind)?;
            package.set(kind, path.replacen(own, &format!("{own}{more}"), 1))?;
        }
    }
    Ok(lua)
}

/// A function of ours: it gives `true` and its values, or `false` and what is said where it was called.
fn bind(
    lua: &Lua,
    name: &'static str,
    shift: usize,
    function: fn(&mut Args<'_>) -> Outcome,
) -> mlua::Result<Function> {
    let shown = name.rsplit('.').next().unwrap_or(name);
    let counted = crate::counts::of(name);
    lua.create_function(move |lua, all: MultiValue| {
        let mut args = Args::new(lua, shown, shift, all);
        let fits = counted.filter(|(least, most, _)| !(*least..=*most).contains(&args.len()));
        let outcome = match fits {
            Some((.., text)) => Err(text.to_owned()),
            None => function(&mut args),
        };
        match outcome {
            Ok(mut values) => {
                values.push_front(Value::Boolean(true));
                Ok(values)
            }
            Err(text) => match text.strip_prefix(BARE) {
                Some(bare) => (false, bare, true).into_lua_multi(lua),
                None => (false, text).into_lua_multi(lua),
            },
        }
    })
}
