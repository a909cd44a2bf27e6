//! The events of a stream that messages are sent on (SPOE.txt, section 3.3).

use lang::filter::Moment;
use lang::places::{self, Place, Places};

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `on-client-session`
    ClientSession,
    /// `on-frontend-tcp-request`
    FrontTcp,
    /// `on-frontend-http-request`
    FrontHttp,
    /// `on-backend-tcp-request`
    BackTcp,
    /// `on-backend-http-request`
    BackHttp,
    /// `on-server-session`
    ServerSession,
    /// `on-tcp-response`
    TcpResponse,
    /// `on-http-response`
    HttpResponse,
}

/// All events by name, in the order in which a stream meets them.
const EVENTS: [(Event, &str); COUNT] = [
    (Event::ClientSession, "on-client-session"),
    (Event::FrontTcp, "on-frontend-tcp-request"),
    (Event::FrontHttp, "on-frontend-http-request"),
    (Event::BackTcp, "on-backend-tcp-request"),
    (Event::BackHttp, "on-backend-http-request"),
    (Event::ServerSession, "on-server-session"),
    (Event::TcpResponse, "on-tcp-response"),
    (Event::HttpResponse, "on-http-response"),
];

/// How many there are.
pub const COUNT: usize = 8;

impl Event {
    /// By name.
    pub fn from_name(name: &str) -> Option<Event> {
        EVENTS.iter().find(|(_, known)| *known == name).map(|(event, _)| *event)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        EVENTS.iter().find(|(event, _)| *event == self).map_or("", |(_, name)| name)
    }

    /// It is one of the frontend alone.
    pub fn is_front(self) -> bool {
        matches!(self, Event::ClientSession | Event::FrontTcp | Event::FrontHttp)
    }

    /// What it is to a proxy that is both frontend and backend: requests come to it only once.
    pub fn of_both(self) -> Event {
        match self {
            Event::BackTcp => Event::FrontTcp,
            Event::BackHttp => Event::FrontHttp,
            other => other,
        }
    }

    /// The events of a moment, in order.
    pub fn at(moment: Moment, front: bool) -> &'static [Event] {
        match moment {
            Moment::Rules if front => &[Event::ClientSession, Event::FrontTcp],
            Moment::FrontRequest => &[Event::FrontHttp],
            Moment::BackContent => &[Event::BackTcp],
            Moment::BackRequest => &[Event::BackHttp],
            Moment::Connected => &[Event::ServerSession],
            Moment::Response => &[Event::TcpResponse],
            Moment::ResponseRules => &[Event::HttpResponse],
            _ => &[],
        }
    }

    /// Where its messages stand, which decides what they may look at.
    pub fn place(self, front: bool, back: bool) -> Place {
        match self {
            Event::ClientSession => Place::FrontConn,
            Event::ServerSession => Place::ServerConnect,
            Event::FrontTcp | Event::BackTcp if front => Place::FrontTcpContent,
            Event::FrontTcp | Event::BackTcp => Place::BackTcpContent,
            Event::FrontHttp | Event::BackHttp if front => Place::FrontHttpReq,
            Event::FrontHttp | Event::BackHttp => Place::BackHttpReq,
            Event::TcpResponse if back => Place::BackTcpResponse,
            Event::TcpResponse => Place::FrontTcpResponse,
            Event::HttpResponse if back => Place::BackHttpRes,
            Event::HttpResponse => Place::FrontHttpRes,
        }
    }
}

/// What HAProxy calls the source of a sample in these messages: the place that has the same number.
pub fn source(of: Places) -> &'static str {
    let place = match of {
        places::CLIENT_L5 => Place::SwitchBackend,
        places::REQUEST_BUFFER | places::EITHER_BUFFER => Place::BackHttpReq,
        places::REQUEST | places::EITHER_HEAD => Place::BackHttpReqBody,
        places::REQUEST_KEPT => Place::ChooseServer,
        places::BACKEND => Place::BackTcpResponse,
        places::SERVER => Place::BackHttpRes,
        places::SERVER_CONN => Place::BackHttpResBody,
        places::RESPONSE_BUFFER => Place::FrontTcpResponse,
        places::RESPONSE => Place::FrontHttpRes,
        places::RESPONSE_KEPT => Place::FrontHttpResBody,
        other => return other.source(),
    };
    place.words()
}
