//! What this side of an HTTP/2 connection allows, as `tune.h2` has it.

use program::Program;
use program::global::{H2Side, Tune};
use wire::h2::Limits;

/// Towards clients. `relax`: `option accept-unsafe-violations-in-http-request`.
pub fn front(program: &Program, relax: bool) -> Limits {
    let tune = &program.global.tune;
    let h2 = &tune.h2;
    Limits {
        total_streams: h2.total_streams,
        resets_at_once: h2.resets_at_once,
        extended_connect: !h2.no_websocket,
        relax,
        ..side(tune, &h2.front)
    }
}

/// Towards servers. `relax`: `option accept-unsafe-violations-in-http-response`.
pub fn back(program: &Program, relax: bool) -> Limits {
    let tune = &program.global.tune;
    Limits { relax, ..side(tune, &tune.h2.back) }
}

fn side(tune: &Tune, side: &H2Side) -> Limits {
    let (h2, defaults) = (&tune.h2, Limits::default());
    let small = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let streams = side.streams.or(h2.both.streams).unwrap_or(defaults.streams);
    let bufsize = small(tune.bufsize);
    let least = streams.max(1).saturating_mul(bufsize);
    // Frames larger than a buffer are never announced.
    let frame = h2.frame.unwrap_or(u32::MAX).min(bufsize).max(defaults.frame);
    Limits {
        header_table: h2.header_table.unwrap_or(defaults.header_table),
        streams,
        window: side.window.or(h2.both.window).unwrap_or(bufsize),
        rxbuf: side.rxbuf.map_or(100 * 16_384, |size| size.next_multiple_of(bufsize.max(1))).max(least),
        frame,
        frames_at_once: side.frames_at_once,
        glitches: side.glitches,
        list: tune.bufsize.saturating_sub(tune.maxrewrite),
        fields: tune.maxhdr,
        ..defaults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_goes_before_what_is_said_for_both() {
        let mut tune = Tune::default();
        tune.h2.both = H2Side { streams: Some(10), window: Some(1000), ..H2Side::default() };
        tune.h2.front.streams = Some(7);
        let limits = side(&tune, &tune.h2.front);
        assert_eq!((limits.streams, limits.window), (7, 1000));
        assert_eq!(side(&tune, &tune.h2.back).streams, 10);
    }

    #[test]
    fn each_stream_has_a_buffer_whatever_rxbuf_says() {
        let mut tune = Tune::default();
        tune.h2.back.rxbuf = Some(1);
        assert_eq!(side(&tune, &tune.h2.back).rxbuf, 100 * 16_384);
        tune.h2.back.rxbuf = Some(200 * 16_384 + 1);
        assert_eq!(side(&tune, &tune.h2.back).rxbuf, 201 * 16_384);
    }

    #[test]
    fn no_frame_is_larger_than_a_buffer() {
        let mut tune = Tune::default();
        tune.h2.frame = Some(1 << 20);
        assert_eq!(side(&tune, &H2Side::default()).frame, 16_384);
        tune.bufsize = 65_536;
        assert_eq!(side(&tune, &H2Side::default()).frame, 65_536);
    }
}
