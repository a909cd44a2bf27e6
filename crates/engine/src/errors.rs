//! The built-in error messages (manual, section on `errorfile`), when no other is configured.

/// The reason that HAProxy's messages give, where it is not that of other answers.
pub fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad request",
        407 => "Unauthorized",
        413 => "Payload Too Large",
        414 => "URI Too Long",
        502 => "Bad Gateway",
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

/// The sentence of a page. Each page is as long as HAProxy's, so that sizes in logs and counters compare.
fn explain(status: u16) -> &'static str {
    match status {
        200 => "Service ready.",
        400 => "That request could not be understood.",
        401 => "What is at this address is shown after a valid login only.",
        403 => "A rule of this proxy forbids this request.",
        404 => "There's nothing at this address.",
        405 => "What is at this address does not take requests of this method, but it may take another.",
        407 => "This proxy takes requests with a name and a password only.",
        408 => "This request did not arrive within the time allowed.",
        410 => "What was at this address has been removed and it will not come back.",
        413 => "The request has a body larger than is accepted.",
        414 => "The address of the request is longer than may be served.",
        421 => "This server gives no answers for that host.",
        422 => "The content of the request makes no sense to us here.",
        425 => "It came too early to be safe.",
        429 => "Too many requests came from there; please try again later.",
        431 => "The request's head is too large.",
        500 => "Something went wrong in the proxy.",
        501 => "The proxy does not know how to do what was asked for, and so it has not tried.",
        502 => "The server's answer was invalid, or it was incomplete.",
        503 => "No server is available to handle this request.",
        504 => "The server did not answer in time.",
        _ => "The request could not be served.",
    }
}
