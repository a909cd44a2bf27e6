//! Addresses as text, without the machinery of `fmt`: it takes twenty times as long for one of IPv4, and a
//! request may need several.

use std::net::Ipv4Addr;

/// Bytes of the longest IPv4 address.
pub const IPV4_MAX: usize = 15;

/// Writes `address` in dotted form to the start of `room` and returns it.
pub fn ipv4(address: Ipv4Addr, room: &mut [u8; IPV4_MAX]) -> &[u8] {
    let mut len = 0;
    let mut put = |byte: u8| {
        if let Some(slot) = room.get_mut(len) {
            *slot = byte;
            len += 1;
        }
    };
    for (at, octet) in address.octets().into_iter().enumerate() {
        if at > 0 {
            put(b'.');
        }
        if octet >= 100 {
            put(b'0' + octet / 100);
        }
        if octet >= 10 {
            put(b'0' + octet / 10 % 10);
        }
        put(b'0' + octet % 10);
    }
    room.get(..len).unwrap_or_default()
}

/// Room for the digits of any number of 64 bits.
pub const INT_MAX: usize = 20;

/// The decimal digits of a number.
pub fn int(mut number: u64, room: &mut [u8; INT_MAX]) -> &[u8] {
    let mut at = room.len();
    for digit in room.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        at -= 1;
        if number == 0 {
            break;
        }
    }
    room.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_display_writes_it() {
        for octet in 0..=255 {
            for address in [[octet, 0, 9, 10], [99, octet, 100, 255], [255, 255, 255, octet]] {
                let address = Ipv4Addr::from(address);
                assert_eq!(ipv4(address, &mut [0; IPV4_MAX]), address.to_string().as_bytes());
            }
        }
    }

    #[test]
    fn numbers_are_written_as_display_writes_them() {
        for number in [0, 7, 10, 1234, u64::MAX] {
            assert_eq!(int(number, &mut [0; INT_MAX]), number.to_string().as_bytes());
        }
    }
}
