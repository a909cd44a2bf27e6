//! One turn of rustls, between the buffers of a connection.

use rustls::Error;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};

use crate::ahead::{Ahead, Transmit};
use crate::room::Room;
use crate::turn::Turn;

/// Most bytes of one message of a handshake with its records, such as a chain of certificates.
pub(super) const MOST: usize = 128 * 1024;

/// Where bytes come from and go to.
pub(super) struct Flow<'a> {
    input: &'a mut Option<Room>,
    output: &'a mut Option<Room>,
    early: &'a mut Vec<u8>,
    ahead: &'a mut Ahead,
}

impl<'a> Flow<'a> {
    pub(super) fn of(
        input: &'a mut Option<Room>,
        output: &'a mut Option<Room>,
        early: &'a mut Vec<u8>,
        ahead: &'a mut Ahead,
    ) -> Flow<'a> {
        Flow { input, output, early, ahead }
    }
}

/// One turn of rustls.
pub(super) fn drive<'c, Data: Transmit + 'c>(
    flow: Flow<'_>,
    process: impl FnOnce(&mut [u8]) -> UnbufferedStatus<'c, '_, Data>,
) -> Result<Turn, Error> {
    let Flow { input, output, early, ahead } = flow;
    let mut nothing = [];
    let bytes = input.as_mut().map_or(&mut nothing[..], Room::filled_mut);
    let status = process(bytes);
    let discard = status.discard;
    let turn = match status.state {
        Err(e) => Err(e),
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            let room = output.get_or_insert_default();
            let mut encoded = data.encode(room.spare_mut());
            if let Err(EncodeError::InsufficientSize(e)) = &encoded
                && e.required_size <= MOST
                && room.grow(room.filled().len() + e.required_size)
            {
                encoded = data.encode(room.spare_mut());
            }
            match encoded {
                Ok(n) => {
                    room.advance(n);
                    ahead.note_message(n);
                    Ok(Turn::Again)
                }
                Err(_) => Err(Error::General("handshake message too long".into())),
            }
        }
        // From here on the buffer answers for it.
        Ok(ConnectionState::TransmitTlsData(data)) => Data::transmit(data, output, ahead),
        Ok(ConnectionState::ReadTraffic(mut data)) => {
            while let Some(record) = data.next_record() {
                early.extend_from_slice(record?.payload);
            }
            Ok(Turn::Again)
        }
        Ok(ConnectionState::ReadEarlyData(data)) => Data::early(data, early).map(|()| Turn::Again),
        Ok(ConnectionState::BlockedHandshake) => Ok(Turn::Read),
        Ok(ConnectionState::WriteTraffic(data)) => ahead.seal(data, output),
        // The peer may close right behind its last message.
        Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Ok(Turn::Closed),
        Ok(_) => Err(Error::General("unknown state".into())),
    };
    if let Some(room) = input {
        room.consume(discard);
        if room.is_empty() {
            *input = None;
        }
    }
    turn
}
