//! Error codes (RFC 9113 section 7), and the two scopes of an error (section 5.4).

/// An error code of `RST_STREAM` or `GOAWAY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

impl Code {
    pub const NO_ERROR: Code = Code(0);
    pub const PROTOCOL_ERROR: Code = Code(1);
    pub const INTERNAL_ERROR: Code = Code(2);
    pub const FLOW_CONTROL_ERROR: Code = Code(3);
    pub const SETTINGS_TIMEOUT: Code = Code(4);
    pub const STREAM_CLOSED: Code = Code(5);
    pub const FRAME_SIZE_ERROR: Code = Code(6);
    pub const REFUSED_STREAM: Code = Code(7);
    pub const CANCEL: Code = Code(8);
    pub const COMPRESSION_ERROR: Code = Code(9);
    pub const CONNECT_ERROR: Code = Code(10);
    pub const ENHANCE_YOUR_CALM: Code = Code(11);
    pub const INADEQUATE_SECURITY: Code = Code(12);
    pub const HTTP_1_1_REQUIRED: Code = Code(13);

    /// The name that the RFC gives it, for logs.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("unknown")
    }
}

/// An error that ends the connection. The `GOAWAY` that says so is already written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fatal {
    pub code: Code,
    /// A few fixed words for people.
    pub why: &'static str,
    /// The log has a line about it, as HAProxy's has.
    pub logged: bool,
}

/// What is told of an error of the connection. HAProxy counts and logs it by the place that saw it, and so do
/// those who watch its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// It counts as a protocol error of the connection and is logged.
    Full,
    /// It counts; it is logged unless a stream is open whose line tells of it.
    Spare,
    /// It counts.
    Counted,
    /// It is logged.
    Logged,
    /// There is but the GOAWAY.
    Nothing,
}

/// What a frame may turn out to be wrong with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection can't go on.
    Connection(Code, &'static str, Notice),
    /// Only the stream of the frame is ended.
    Stream(Code),
    /// So it is, because the head or the trailers that came on it are none.
    Message,
}

pub(super) fn protocol(why: &'static str) -> Fault {
    Fault::Connection(Code::PROTOCOL_ERROR, why, Notice::Full)
}

pub(super) fn on_closed(why: &'static str) -> Fault {
    Fault::Connection(Code::STREAM_CLOSED, why, Notice::Nothing)
}

pub(super) fn size(why: &'static str) -> Fault {
    Fault::Connection(Code::FRAME_SIZE_ERROR, why, Notice::Full)
}
