//! What shall become of one request, decided from the seed before it is sent. The client keeps to its part,
//! and the origin reads its own in `x-plan`, so both can judge what they saw on their own.

use std::time::Duration;

use crate::content::Rng;

/// No step may take longer.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// How a body is marked off in HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length,
    Chunked,
    /// It ends with the connection (responses only).
    Close,
}

/// What the client does before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEnd {
    Stay,
    /// It leaves when so many bytes of the request body are sent.
    LeaveSending(u64),
    /// It leaves when so many bytes of the response body have come; zero: while it waits for the head.
    LeaveReading(u64),
    /// It ends its direction after the request and waits for the response (HTTP/1 only).
    HalfClose,
}

/// What the origin does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginEnd {
    /// Reads the request, then answers it.
    Whole,
    /// Answers at once, then reads the request to its end.
    Early,
    /// Answers whole and says that it closes (`connection: close`, GOAWAY).
    Announced,
    /// Answers whole and closes without a word: where the configuration says `flaky` only.
    Silent,
    /// Breaks off after the request's head, without an answer.
    NoAnswer,
    /// Breaks off when so many bytes of the response body are sent.
    Cut(u64),
}

/// How fast a side sends or takes a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Fast,
    /// So many milliseconds of rest after each piece of so many bytes.
    Slow {
        piece: u64,
        rest: u64,
    },
}

impl Pace {
    /// The milliseconds of rest after bytes that brought the body from place `before` to place `now`.
    pub fn rest(self, before: u64, now: u64) -> u64 {
        match self {
            Pace::Fast => 0,
            Pace::Slow { piece, rest } => rest * (now / piece - before / piece).min(40),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub id: u64,
    pub method: &'static str,
    pub up: u64,
    pub up_framing: Framing,
    pub down: u64,
    pub down_framing: Framing,
    pub status: u16,
    pub client: ClientEnd,
    pub origin: OriginEnd,
    pub send: Pace,
    pub take: Pace,
    pub origin_send: Pace,
    pub origin_take: Pace,
    /// Trailers behind the request body and behind the response body.
    pub trailers: bool,
    /// The length of a field that fills the heads.
    pub pad: u64,
    /// An interim response before the final one.
    pub interim: bool,
}

/// What kind of server a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// Servers close only after having said so: each request that nobody aborts on purpose is answered.
    Solid,
    /// Servers close idle connections, kill busy ones and go away without a word.
    Flaky,
}

/// What a client's protocol and the proxies' modes allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    pub client_h2: bool,
    pub server_h2: bool,
    /// The proxy passes bytes and knows no messages.
    pub tcp: bool,
    pub ground: Ground,
}

fn length(rng: &mut Rng) -> u64 {
    match rng.below(1000) {
        0..300 => 0,
        300..750 => rng.between(1, 2_000),
        750..960 => rng.between(1, 32_768),
        960..993 => rng.between(16_000, 262_144),
        993..999 => rng.between(200_000, 1_048_576),
        _ => rng.between(1_000_000, 3_000_000),
    }
}

fn pace(rng: &mut Rng, len: u64) -> Pace {
    if !rng.percent(6) {
        return Pace::Fast;
    }
    let pieces = rng.between(1, 40);
    Pace::Slow { piece: (len / pieces).max(1), rest: rng.between(1, 15) }
}

impl Plan {
    pub fn random(rng: &mut Rng, id: u64, scope: Scope) -> Plan {
        let method = *rng.pick(&["GET", "GET", "GET", "GET", "GET", "POST", "POST", "PUT", "HEAD"]);
        let up = if method == "POST" || method == "PUT" { length(rng) } else { 0 };
        let mut down = length(rng);
        let status = match rng.below(20) {
            0 => *rng.pick(&[201, 202, 404, 410, 500, 403]),
            1 => *rng.pick(&[204, 304]),
            _ => 200,
        };
        if status == 204 || status == 304 {
            down = 0;
        }
        let framing = |rng: &mut Rng| if rng.percent(40) { Framing::Chunked } else { Framing::Length };
        let up_framing = framing(rng);
        let mut down_framing = framing(rng);
        let client = match rng.below(100) {
            0..2 if up > 0 => ClientEnd::LeaveSending(rng.below(up)),
            2..5 => ClientEnd::LeaveReading(rng.below(down.max(1))),
            5..7 if !scope.client_h2 => ClientEnd::HalfClose,
            _ => ClientEnd::Stay,
        };
        let has_body = method != "HEAD" && status != 204 && status != 304;
        let origin = match rng.below(100) {
            0..4 if up > 0 && !scope.tcp => OriginEnd::Early,
            4..7 => OriginEnd::Announced,
            7 => OriginEnd::NoAnswer,
            8..10 if has_body && down > 0 => OriginEnd::Cut(rng.below(down)),
            10..15 if scope.ground == Ground::Flaky => OriginEnd::Silent,
            _ => OriginEnd::Whole,
        };
        if !scope.server_h2 && has_body && origin == OriginEnd::Announced && rng.percent(50) {
            down_framing = Framing::Close;
        }
        Plan {
            id,
            method,
            up,
            up_framing,
            down,
            down_framing,
            status,
            client,
            origin,
            send: pace(rng, up),
            take: pace(rng, down),
            origin_send: pace(rng, down),
            origin_take: pace(rng, up),
            trailers: rng.percent(10),
            pad: if rng.percent(10) { rng.between(100, 3000) } else { rng.below(40) },
            interim: rng.percent(3) && !scope.tcp,
        }
    }

    /// No request may take longer: what stands still is told from what crawls through windows of a thousand
    /// bytes, each of which takes a turn of three processes that wait for a processor.
    pub fn deadline(&self) -> Duration {
        PATIENCE + Duration::from_millis((self.up + self.down) / 10)
    }

    /// Whether the response may have a body.
    pub fn answers_with_body(&self) -> bool {
        self.method != "HEAD" && self.status != 204 && self.status != 304
    }

    /// Whether the client may leave before the end.
    pub fn client_leaves(&self) -> bool {
        matches!(self.client, ClientEnd::LeaveSending(_) | ClientEnd::LeaveReading(_))
    }

    /// The origin's part as the value of `x-plan`.
    pub fn encode(&self) -> String {
        let (origin, at) = match self.origin {
            OriginEnd::Whole => ("whole", 0),
            OriginEnd::Early => ("early", 0),
            OriginEnd::Announced => ("announced", 0),
            OriginEnd::Silent => ("silent", 0),
            OriginEnd::NoAnswer => ("none", 0),
            OriginEnd::Cut(at) => ("cut", at),
        };
        let framing = match self.down_framing {
            Framing::Length => "length",
            Framing::Chunked => "chunked",
            Framing::Close => "close",
        };
        let pace = |p: Pace| match p {
            Pace::Fast => "0 0".to_owned(),
            Pace::Slow { piece, rest } => format!("{piece} {rest}"),
        };
        format!(
            "{} {} {} {framing} {} {origin} {at} {} {} {} {} {}",
            self.method,
            self.up,
            self.down,
            self.status,
            pace(self.origin_send),
            pace(self.origin_take),
            self.trailers as u8,
            self.pad,
            self.interim as u8 + 2 * self.client_leaves() as u8,
        )
    }

    /// The origin's part, read from the values of `x-id` and `x-plan`. A client that leaves is told as one
    /// that leaves while it reads.
    pub fn decode(id: &str, plan: &str) -> Option<Plan> {
        let mut words = plan.split(' ');
        let method = match words.next()? {
            "GET" => "GET",
            "HEAD" => "HEAD",
            "POST" => "POST",
            "PUT" => "PUT",
            _ => return None,
        };
        let up = words.next()?.parse().ok()?;
        let down = words.next()?.parse().ok()?;
        let down_framing = match words.next()? {
            "length" => Framing::Length,
            "chunked" => Framing::Chunked,
            "close" => Framing::Close,
            _ => return None,
        };
        let status = words.next()?.parse().ok()?;
        let origin = words.next()?.to_owned();
        let mut number = || words.next()?.parse::<u64>().ok();
        let at = number()?;
        let mut pace = || {
            let (piece, rest) = (number()?, number()?);
            Some(if piece == 0 { Pace::Fast } else { Pace::Slow { piece, rest } })
        };
        let (origin_send, origin_take) = (pace()?, pace()?);
        let trailers = number()? == 1;
        let pad = number()?;
        let bits = number()?;
        Some(Plan {
            id: id.parse().ok()?,
            method,
            up,
            up_framing: Framing::Length,
            down,
            down_framing,
            status,
            client: if bits & 2 != 0 { ClientEnd::LeaveReading(0) } else { ClientEnd::Stay },
            origin: match origin.as_str() {
                "whole" => OriginEnd::Whole,
                "early" => OriginEnd::Early,
                "announced" => OriginEnd::Announced,
                "silent" => OriginEnd::Silent,
                "none" => OriginEnd::NoAnswer,
                "cut" => OriginEnd::Cut(at),
                _ => return None,
            },
            send: Pace::Fast,
            take: Pace::Fast,
            origin_send,
            origin_take,
            trailers,
            pad,
            interim: bits & 1 != 0,
        })
    }
}

/// The field that fills a head: a function of the id, so that it can be checked.
pub fn padding(id: u64, len: u64) -> String {
    let mut rng = Rng::new(id ^ 0x7061_6464);
    (0..len).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_side_rests_after_pieces_however_it_cuts_them() {
        let pace = Pace::Slow { piece: 1000, rest: 3 };
        let rests: u64 = (0..100).map(|n| pace.rest(n * 100, (n + 1) * 100)).sum();
        assert_eq!(rests, 10 * 3);
        assert_eq!(pace.rest(0, 10_000), 10 * 3);
        assert_eq!(Pace::Fast.rest(0, 10_000), 0);
    }

    #[test]
    fn a_plan_arrives_as_it_was_made() {
        let scope = Scope { client_h2: false, server_h2: false, tcp: false, ground: Ground::Flaky };
        let mut rng = Rng::new(1);
        for id in 0..500 {
            let made = Plan::random(&mut rng, id, scope);
            let read = Plan::decode(&id.to_string(), &made.encode()).expect("it can be read");
            assert_eq!(
                (
                    read.method,
                    read.up,
                    read.down,
                    read.down_framing,
                    read.status,
                    read.origin,
                    read.pad,
                    read.trailers
                ),
                (
                    made.method,
                    made.up,
                    made.down,
                    made.down_framing,
                    made.status,
                    made.origin,
                    made.pad,
                    made.trailers
                )
            );
            assert_eq!((read.origin_send, read.origin_take), (made.origin_send, made.origin_take));
            assert_eq!((read.interim, read.client_leaves()), (made.interim, made.client_leaves()));
        }
    }
}
