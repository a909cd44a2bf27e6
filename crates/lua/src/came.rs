//! What came of what scripts waited for.

use mlua::{Lua, MultiValue, Value};

use crate::client;

/// What came of it: made into values of Lua's when the script is resumed.
pub enum Came {
    /// Nothing, not even that.
    Nothing,
    /// Nothing more than that it is over.
    Over,
    /// An error, raised where the script waited.
    Wrong(String),
    /// A string, or nil.
    Bytes(Option<Vec<u8>>),
    /// A number.
    Number(i64),
    /// nil, a message, and perhaps what came before that.
    Failed(&'static str, Option<Vec<u8>>),
    /// An answer to a request.
    Answer(Box<client::Answer>),
}

impl Came {
    /// The values that the script is resumed with: whether it went well, and the rest.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn values(self, lua: &Lua) -> mlua::Result<MultiValue> {
        use mlua::IntoLuaMulti;
        match self {
            Came::Nothing => Ok(MultiValue::new()),
            Came::Over => true.into_lua_multi(lua),
            Came::Wrong(text) => (false, text).into_lua_multi(lua),
            Came::Bytes(Some(bytes)) => (true, lua.create_string(bytes)?).into_lua_multi(lua),
            Came::Bytes(None) => (true, Value::Nil).into_lua_multi(lua),
            Came::Number(n) => (true, n).into_lua_multi(lua),
            Came::Failed(why, part) => {
                let part = part.map(|p| lua.create_string(p)).transpose()?;
                (true, Value::Nil, why, part).into_lua_multi(lua)
            }
            Came::Answer(answer) => (true, answer.table(lua)?).into_lua_multi(lua),
        }
    }
}
