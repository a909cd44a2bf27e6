//! States of Lua that may load modules of C.
//!
//! They stand here and not beside the scripts because opening one is the only thing about Lua that the
//! compiler can't vouch for.

use mlua::{Lua, LuaOptions, StdLib};

/// A state with these libraries. The library `debug` is left out: it reaches into the insides of functions,
/// ours among them.
#[must_use]
pub fn open(libs: StdLib, options: LuaOptions) -> Lua {
    let libs = libs & (StdLib::ALL ^ StdLib::DEBUG);
    // SAFETY: nothing of such a state is unsound by itself, but `require` and `package.loadlib` run code that
    // nobody checked. Which code that is stands in the scripts and folders that the administrator names, like
    // the libraries that the program itself is linked with; a peer's bytes don't choose it.
    unsafe { Lua::unsafe_new_with(libs, options) }
}
