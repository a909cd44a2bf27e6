//! What this side of an HTTP/2 connection allows, as `tune.h2` has it.

use program::global::{Global, H2Side, Tune};
use wire::h2::Limits;

/// Towards clients, while so many tasks wait for their turn. `relax`: `option
/// accept-unsafe-violations-in-http-request`.
pub fn front(global: &Global, relax: bool, waiting: usize) -> Limits {
    let tune = &global.tune;
    let h2 = &tune.h2;
    let usual = side(tune, &h2.front);
    let aim = match h2.load {
        u32::MAX => depth(tune, global.threads),
        load => load,
    };
    Limits {
        total_streams: h2.total_streams,
        resets_at_once: h2.resets_at_once,
        extended_connect: !h2.no_websocket,
        relax,
        streams: moderated(usual.streams, aim, waiting, h2.load_min),
        ..usual
    }
}

/// `tune.runqueue-depth`: unless it is set between 280 with one thread and 35 with many.
fn depth(tune: &Tune, threads: u32) -> u32 {
    match tune.runqueue_depth {
        0 => (280 / threads.max(1)).max(35),
        depth => depth,
    }
}

/// `rq-load` of `tune.h2.fe.max-concurrent-streams`: what is offered falls with the square of what waits
/// beyond the aim (0: never).
fn moderated(streams: u32, aim: u32, waiting: usize, least: u32) -> u32 {
    let (aim, waiting) = (u64::from(aim), waiting as u64);
    if aim == 0 || streams == 0 || waiting <= aim {
        return streams;
    }
    let fewer = u64::from(streams).saturating_mul(aim * aim) / waiting.saturating_mul(waiting).max(1);
    u32::try_from(fewer).unwrap_or(streams).max(least.max(1)).min(streams)
}

/// Towards servers. `relax`: `option accept-unsafe-violations-in-http-response`.
pub fn back(tune: &Tune, relax: bool) -> Limits {
    Limits { relax, extended_connect: !tune.h2.no_websocket, ..side(tune, &tune.h2.back) }
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
        spared_below: tune.glitches.cpu,
        list: tune.most_read(),
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
    fn a_worker_with_too_much_to_do_offers_fewer_streams() {
        assert_eq!(moderated(100, 50, 50, 1), 100, "at the aim");
        assert_eq!(moderated(100, 50, 100, 1), 25, "twice the aim, a quarter of the streams");
        assert_eq!(moderated(100, 50, 5000, 15), 15, "but never less than min");
        assert_eq!(moderated(100, 50, usize::MAX, 0), 1);
        assert_eq!(moderated(10, 50, 5000, 15), 10, "nor more than the limit");
        assert_eq!(moderated(100, 0, 5000, 1), 100, "ignore");
        let tune = Tune::default();
        assert_eq!([1, 2, 4, 8, 64].map(|threads| depth(&tune, threads)), [280, 140, 70, 35, 35]);
        let set = Tune { runqueue_depth: 7, ..tune };
        assert_eq!(depth(&set, 1), 7);
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
