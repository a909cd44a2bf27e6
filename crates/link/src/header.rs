//! The headers that a client's connection may begin with (`accept-proxy`, `accept-netscaler-cip`).

use model::Peer;
use model::conn::ProxyHeader;
use rt::{Buf, Timer};
use wire::proxy::tlv::{self, Tlvs};
use wire::proxy::{Error, Header, Parsed};

use crate::timed::{self, Trouble};
use crate::transport::Transport;

/// Why a connection did not begin with the header it must begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// The client closed before it sent anything.
    Closed,
    /// The connection broke.
    Broken,
    /// Nothing came in time.
    Timeout,
    /// Only a part came. Whoever sends a header sends it first and whole, says the protocol; more is not
    /// waited for.
    Truncated,
    /// What came is no header.
    NotHeader,
    /// The header is malformed.
    Bad,
    /// The header is about a protocol that is not TCP.
    Unhandled,
}

impl HeaderFault {
    /// Number and text of the error of a PROXY header, as `fc_err` and `fc_err_str` have them.
    pub fn of_proxy(self) -> (u8, &'static str) {
        match self {
            HeaderFault::Closed => (11, "Connection closed while waiting for PROXY protocol header"),
            HeaderFault::Broken => (12, "Connection error while waiting for PROXY protocol header"),
            HeaderFault::Timeout => (13, "Timeout while waiting for PROXY protocol header"),
            HeaderFault::Truncated => (14, "Truncated PROXY protocol header received"),
            HeaderFault::NotHeader => {
                (15, "Received something which does not look like a PROXY protocol header")
            }
            HeaderFault::Bad => (16, "Received an invalid PROXY protocol header"),
            HeaderFault::Unhandled => (17, "Received an unhandled protocol in the PROXY protocol header"),
        }
    }

    /// The same of a NetScaler header.
    pub fn of_cip(self) -> (u8, &'static str) {
        match self {
            HeaderFault::Closed => (18, "Connection closed while waiting for NetScaler Client IP header"),
            HeaderFault::Broken => (19, "Connection error while waiting for NetScaler Client IP header"),
            HeaderFault::Timeout => (20, "Timeout while waiting for a NetScaler Client IP header"),
            HeaderFault::Truncated => (21, "Truncated NetScaler Client IP header received"),
            HeaderFault::NotHeader => (22, "Received an invalid NetScaler Client IP magic number"),
            HeaderFault::Bad | HeaderFault::Unhandled => {
                (23, "Received an unhandled protocol in the NetScaler Client IP header")
            }
        }
    }
}

/// The fewest bytes that show what they are.
const SHORTEST: usize = 6;

/// Takes a header from the start of a buffer.
///
/// # Errors
/// There is no such header, or not all of it.
pub fn take(buf: &mut Buf, conn: &model::Conn, cip: Option<u32>) -> Result<(), HeaderFault> {
    let parsed = match cip {
        Some(magic) => wire::proxy::parse_cip(buf.filled(), magic),
        None => wire::proxy::parse(buf.filled()),
    };
    match parsed {
        Ok(Parsed::Complete(header, taken)) => {
            buf.consume(taken);
            note(&header, conn);
            Ok(())
        }
        Ok(Parsed::Partial) => Err(HeaderFault::Truncated),
        Err(Error::NotProxy) if buf.filled().len() < SHORTEST => Err(HeaderFault::Truncated),
        Err(Error::NotProxy) => Err(HeaderFault::NotHeader),
        Err(Error::Unhandled) => Err(HeaderFault::Unhandled),
        Err(Error::Malformed | Error::TooLong | Error::Checksum) => Err(HeaderFault::Bad),
    }
}

/// Receives the headers that a connection begins with, of PROXY and of NetScaler, where nobody needs to know
/// what they say. What came behind them stays in `input`.
///
/// # Errors
/// No such header came, or not in time.
pub async fn pass(
    transport: &Transport,
    (proxy, cip): (bool, Option<u32>),
    input: &mut Vec<u8>,
    timer: &mut Timer,
) -> Result<(), Trouble> {
    if proxy {
        pass_one(transport, input, timer, wire::proxy::parse).await?;
    }
    if let Some(magic) = cip {
        pass_one(transport, input, timer, |data| wire::proxy::parse_cip(data, magic)).await?;
    }
    Ok(())
}

async fn pass_one(
    transport: &Transport,
    input: &mut Vec<u8>,
    timer: &mut Timer,
    parse: impl Fn(&[u8]) -> Result<Parsed, Error>,
) -> Result<(), Trouble> {
    loop {
        match parse(input) {
            Ok(Parsed::Complete(_, taken)) => {
                input.drain(..taken.min(input.len()));
                return Ok(());
            }
            Ok(Parsed::Partial) => {}
            Err(Error::NotProxy) if input.len() < SHORTEST => {}
            Err(_) => return Err(Trouble::Io(std::io::ErrorKind::InvalidData.into())),
        }
        timed::more(transport, input, timer).await?;
    }
}

fn note(header: &Header, conn: &model::Conn) {
    if let Some((src, dst)) = header.addresses {
        // What the network said stays with `fc_src` and `fc_dst`.
        conn.src.set(Peer::Inet(src));
        conn.dst.set(Peer::Inet(dst));
    }
    let tlvs: Vec<(u8, Box<[u8]>)> = Tlvs(&header.tlvs).map(|(k, v)| (k, v.into())).collect();
    let find = |kind| tlvs.iter().find(|(k, _)| *k == kind).map(|(_, v)| v.clone());
    let known = ProxyHeader { authority: find(tlv::AUTHORITY), unique_id: find(tlv::UNIQUE_ID), tlvs };
    *conn.proxy_header.borrow_mut() = Some(Box::new(known));
}
