//! The types of data that an entry may hold (manual, section 11.1).
//!
//! Their order is that of the columns in `show table`, which is also their number on the wire between peers.

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An unsigned 32-bit number.
    Count,
    /// An unsigned 64-bit number.
    Long,
    /// Events per period.
    Rate,
    /// A short text.
    Text,
}

/// A type of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Data {
    ServerId,
    Gpt0,
    Gpc0,
    Gpc0Rate,
    ConnCnt,
    ConnRate,
    ConnCur,
    SessCnt,
    SessRate,
    HttpReqCnt,
    HttpReqRate,
    HttpErrCnt,
    HttpErrRate,
    BytesInCnt,
    BytesInRate,
    BytesOutCnt,
    BytesOutRate,
    Gpc1,
    Gpc1Rate,
    ServerKey,
    HttpFailCnt,
    HttpFailRate,
    Gpt,
    Gpc,
    GpcRate,
    GlitchCnt,
    GlitchRate,
}

/// One line of the table of types.
pub struct Entry {
    /// The type.
    pub data: Data,
    /// As written behind `store`.
    pub name: &'static str,
    /// What a cell of it holds.
    pub shape: Shape,
    /// It is an array: the number of elements is its first argument.
    pub array: bool,
    /// What it holds, in a sentence.
    pub doc: &'static str,
}

const fn of(data: Data, name: &'static str, shape: Shape, doc: &'static str) -> Entry {
    Entry { data, name, shape, array: false, doc }
}

const fn array(data: Data, name: &'static str, shape: Shape, doc: &'static str) -> Entry {
    Entry { data, name, shape, array: true, doc }
}

/// All types in order.
pub const TYPES: &[Entry] = &[
    of(Data::ServerId, "server_id", Shape::Count, "Number of the server that was chosen."),
    of(Data::Gpt0, "gpt0", Shape::Count, "A number that rules set."),
    of(Data::Gpc0, "gpc0", Shape::Count, "A counter that rules raise."),
    of(Data::Gpc0Rate, "gpc0_rate", Shape::Rate, "How often gpc0 was raised within the period."),
    of(Data::ConnCnt, "conn_cnt", Shape::Count, "Connections since the entry was made."),
    of(Data::ConnRate, "conn_rate", Shape::Rate, "Connections within the period."),
    of(Data::ConnCur, "conn_cur", Shape::Count, "Connections now."),
    of(
        Data::SessCnt,
        "sess_cnt",
        Shape::Count,
        "Sessions since the entry was made: connections that passed the rules of connections.",
    ),
    of(Data::SessRate, "sess_rate", Shape::Rate, "Sessions within the period."),
    of(Data::HttpReqCnt, "http_req_cnt", Shape::Count, "Requests since the entry was made."),
    of(Data::HttpReqRate, "http_req_rate", Shape::Rate, "Requests within the period."),
    of(
        Data::HttpErrCnt,
        "http_err_cnt",
        Shape::Count,
        "Requests that were wrong or refused (4xx) since the entry was made.",
    ),
    of(Data::HttpErrRate, "http_err_rate", Shape::Rate, "The same within the period."),
    of(Data::BytesInCnt, "bytes_in_cnt", Shape::Long, "Bytes from clients since the entry was made."),
    of(Data::BytesInRate, "bytes_in_rate", Shape::Rate, "Bytes from clients within the period."),
    of(Data::BytesOutCnt, "bytes_out_cnt", Shape::Long, "Bytes to clients since the entry was made."),
    of(Data::BytesOutRate, "bytes_out_rate", Shape::Rate, "Bytes to clients within the period."),
    of(Data::Gpc1, "gpc1", Shape::Count, "A second counter that rules raise."),
    of(Data::Gpc1Rate, "gpc1_rate", Shape::Rate, "How often gpc1 was raised within the period."),
    of(
        Data::ServerKey,
        "server_key",
        Shape::Text,
        "Name of the server that was chosen, for tables that peers share.",
    ),
    of(
        Data::HttpFailCnt,
        "http_fail_cnt",
        Shape::Count,
        "Responses that tell of a fault of servers (5xx) since the entry was made.",
    ),
    of(Data::HttpFailRate, "http_fail_rate", Shape::Rate, "The same within the period."),
    array(Data::Gpt, "gpt", Shape::Count, "An array of numbers that rules set."),
    array(Data::Gpc, "gpc", Shape::Count, "An array of counters that rules raise."),
    array(
        Data::GpcRate,
        "gpc_rate",
        Shape::Rate,
        "How often each counter of gpc was raised within the period.",
    ),
    of(Data::GlitchCnt, "glitch_cnt", Shape::Count, "Breaches of the protocol since the entry was made."),
    of(Data::GlitchRate, "glitch_rate", Shape::Rate, "Breaches of the protocol within the period."),
];

/// How many types there are.
pub const COUNT: usize = TYPES.len();

impl Data {
    /// The type of this name.
    pub fn from_name(name: &str) -> Option<Data> {
        TYPES.iter().find(|t| t.name == name).map(|t| t.data)
    }

    fn entry(self) -> &'static Entry {
        // The order of the table is that of the variants; a test holds them together.
        &TYPES[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// What a cell of it holds.
    pub fn shape(self) -> Shape {
        self.entry().shape
    }

    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        self.entry().array
    }

    /// The element of an array that stands for this type in tables that have the array instead.
    pub fn in_array(self) -> Option<(Data, usize)> {
        Some(match self {
            Data::Gpt0 => (Data::Gpt, 0),
            Data::Gpc0 => (Data::Gpc, 0),
            Data::Gpc1 => (Data::Gpc, 1),
            Data::Gpc0Rate => (Data::GpcRate, 0),
            Data::Gpc1Rate => (Data::GpcRate, 1),
            _ => return None,
        })
    }
}
