//! Header captures (`capture request header`, `declare capture`): slots that log lines and rules show.
//!
//! A frontend has a list of slots for each direction. Those with a name are filled from the head as it was
//! received, before any rule; the others wait for a `capture` action or converter.

use wire::head::Head;

/// One slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The field to keep, in any case; `None` for a declared slot that rules fill.
    pub header: Option<Box<[u8]>>,
    /// Bytes kept at most.
    pub length: usize,
}

/// Makes room for every slot and fills those with a name: the last field of it, whole, cut at the length.
pub fn fill(slots: &[Slot], head: &Head, captures: &mut Vec<Option<Box<[u8]>>>) {
    captures.resize_with(slots.len().max(captures.len()), || None);
    for (slot, place) in slots.iter().zip(captures) {
        let Some(name) = &slot.header else { continue };
        if let Some(value) = head.last(&**name) {
            *place = Some(value.get(..slot.length).unwrap_or(value).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_field_is_kept_up_to_the_length() {
        let mut head = Head::request();
        for value in ["first", "a, longer one"] {
            head.append(b"x-a", value.as_bytes()).unwrap();
        }
        let slot =
            |header: Option<&str>, length| Slot { header: header.map(|h| h.as_bytes().into()), length };
        let slots = [slot(Some("X-A"), 5), slot(None, 9), slot(Some("x-none"), 9)];
        let mut captures = Vec::new();
        fill(&slots, &head, &mut captures);
        assert_eq!(captures, vec![Some(b"a, lo"[..].into()), None, None]);
    }
}
