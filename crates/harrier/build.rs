//! Modules of C that scripts load (`require "cjson"`) find Lua in the program itself.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=lua_*");
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=luaL_*");
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=luaopen_*");
}
