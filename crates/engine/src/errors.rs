//! The built-in error messages (manual, section on `errorfile`), when no other is configured.

/// The reason that HAProxy's messages give, where it is not that of other answers.
pub fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad request",
        407 => "Unauthorized",
        408 => "Request Time-out",
        504 => "Gateway Time-out",
        _ => wire::head::Head::reason_for(status),
    }
}

/// Whether the message of a status says that the connection ends with it.
pub fn closes(status: u16) -> bool {
    matches!(status, 400 | 408)
}

/// The HTML page of a status.
pub fn page(status: u16) -> String {
    let reason = reason(status);
    let text = explain(status);
    format!("<html><body><h1>{status} {reason}</h1>\n{text}\n</body></html>\n")
}

fn explain(status: u16) -> &'static str {
    match status {
        200 => "Service ready.",
        400 => "The request could not be understood.",
        401 => "This needs a valid user name and password.",
        403 => "A rule forbids this request.",
        404 => "There is nothing at this address.",
        405 => "This address does not take that method.",
        407 => "The proxy needs a valid user name and password.",
        408 => "The request did not arrive in time.",
        410 => "What was at this address is gone for good.",
        413 => "The body of the request is too large.",
        421 => "This server does not answer for that host.",
        422 => "The content of the request could not be processed.",
        425 => "The request came too early to be safe.",
        429 => "Too many requests; try again later.",
        431 => "The fields of the request are too large.",
        500 => "Something went wrong inside the proxy.",
        501 => "The proxy does not know how to do that.",
        502 => "The server's answer was invalid or incomplete.",
        503 => "No server is available to handle this request.",
        504 => "The server did not answer in time.",
        _ => "The request could not be served.",
    }
}
