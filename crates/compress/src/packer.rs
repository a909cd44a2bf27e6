//! The algorithms, behind one interface: payload in, packed bytes into the room that is given.

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use lang::compression::Algorithm;
use lang::filter::Broken;
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Status};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

/// What shall be done with the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More comes.
    Take,
    /// Everything so far shall come out.
    Flush,
    /// That was all.
    End,
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// Bytes taken.
    pub taken: usize,
    /// Bytes written.
    pub made: usize,
    /// A flush or the end is complete.
    pub done: bool,
}

/// How a packer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Its level.
    pub level: i32,
    /// `tune.zlib.memlevel`, for gzip and deflate.
    pub memory_level: i32,
    /// `tune.zlib.windowsize`, for gzip and deflate.
    pub window: i32,
}

impl Recipe {
    /// Bytes that a packer of zlib takes: what its manual says of the two settings, and its own state.
    pub fn memory(&self) -> u64 {
        match self.algorithm {
            Algorithm::Gzip | Algorithm::Deflate | Algorithm::RawDeflate => {
                (1u64 << (self.window.clamp(8, 15) + 2))
                    + (1u64 << (self.memory_level.clamp(1, 9) + 9))
                    + 8192
            }
            _ => 0,
        }
    }
}

/// A packer.
pub struct Packer {
    recipe: Recipe,
    mark: Option<(u64, u8)>,
    inner: Inner,
}

enum Inner {
    Identity,
    Flate(Box<Deflate>),
    Brotli(Box<BrotliEncoderStateStruct<StandardAlloc>>),
    Zstd(CCtx<'static>),
}

/// The window of brotli, in bits: 256 KiB, so that a stream takes about a megabyte.
const BROTLI_WINDOW: u32 = 18;
/// That of zstd: what decoders in browsers allow is 8 MiB, what is sensible for a stream is far less.
const ZSTD_WINDOW: u32 = 19;

fn brotli(level: i32) -> Box<BrotliEncoderStateStruct<StandardAlloc>> {
    let mut state = BrotliEncoderStateStruct::new(StandardAlloc::default());
    let quality = u32::try_from(level).unwrap_or(0);
    state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, quality);
    state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, BROTLI_WINDOW);
    Box::new(state)
}

/// The level of `zlib-rs` for one of zlib. Its own level 1 packs a quarter less than that of zlib, which is
/// what whoever says 1 has in mind; its level 2 packs a little more.
fn flate_level(level: i32) -> i32 {
    level.clamp(2, 9)
}

impl Packer {
    /// A new one; `None` if there is no memory for it.
    pub fn new(recipe: Recipe) -> Option<Packer> {
        let flate = |window_bits| {
            let config = DeflateConfig {
                level: flate_level(recipe.level),
                window_bits,
                mem_level: recipe.memory_level,
                ..DeflateConfig::default()
            };
            Inner::Flate(Box::new(Deflate::new_with_config(config)))
        };
        // A window of 8 bits is one of 9 to zlib, and its raw form does not take it at all.
        let window = recipe.window.max(9);
        let inner = match recipe.algorithm {
            Algorithm::Identity => Inner::Identity,
            Algorithm::Gzip => flate(window + 16),
            Algorithm::Deflate => flate(window),
            Algorithm::RawDeflate => flate(-window),
            Algorithm::Brotli => Inner::Brotli(brotli(recipe.level)),
            Algorithm::Zstd => {
                let mut context = CCtx::try_create()?;
                context.set_parameter(CParameter::CompressionLevel(recipe.level)).ok()?;
                context.set_parameter(CParameter::WindowLog(ZSTD_WINDOW)).ok()?;
                Inner::Zstd(context)
            }
        };
        Some(Packer { recipe, mark: mark(recipe), inner })
    }

    /// How it was made.
    pub fn recipe(&self) -> Recipe {
        self.recipe
    }

    /// Makes it ready for another message; `false` if that can't be.
    pub fn reset(&mut self) -> bool {
        match &mut self.inner {
            Inner::Identity => true,
            Inner::Flate(deflate) => {
                deflate.reset();
                deflate.set_level(flate_level(self.recipe.level)).is_ok()
            }
            // It has no way back.
            Inner::Brotli(_) => false,
            Inner::Zstd(context) => context.reset(ResetDirective::SessionOnly).is_ok(),
        }
    }

    /// Packs at another level from here on, right behind a flush.
    pub fn set_level(&mut self, level: i32) {
        if let Inner::Flate(deflate) = &mut self.inner {
            let _ = deflate.set_level(flate_level(level));
        }
    }

    /// Takes payload and writes what comes of it into the room.
    ///
    /// # Errors
    /// The packer can't go on.
    pub fn step(&mut self, payload: &[u8], room: &mut [u8], step: Step) -> Result<Stepped, Broken> {
        match &mut self.inner {
            Inner::Identity => {
                let n = payload.len().min(room.len());
                room.iter_mut().zip(payload).for_each(|(to, from)| *to = *from);
                Ok(Stepped { taken: n, made: n, done: n == payload.len() })
            }
            Inner::Flate(deflate) => flate(deflate, self.mark, payload, room, step),
            Inner::Brotli(state) => {
                let op = match step {
                    Step::Take => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
                    Step::Flush => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
                    Step::End => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
                };
                let (mut left, mut from) = (payload.len(), 0);
                let (mut free, mut to) = (room.len(), 0);
                let fine = state.compress_stream(
                    op,
                    &mut left,
                    payload,
                    &mut from,
                    &mut free,
                    room,
                    &mut to,
                    &mut None,
                    &mut |_, _, _, _| (),
                );
                if !fine {
                    return Err(Broken);
                }
                let done =
                    left == 0 && !state.has_more_output() && (step != Step::End || state.is_finished());
                Ok(Stepped { taken: from, made: to, done })
            }
            Inner::Zstd(context) => {
                let op = match step {
                    Step::Take => ZSTD_EndDirective::ZSTD_e_continue,
                    Step::Flush => ZSTD_EndDirective::ZSTD_e_flush,
                    Step::End => ZSTD_EndDirective::ZSTD_e_end,
                };
                let mut input = InBuffer::around(payload);
                let mut output = OutBuffer::around(room);
                let left = context.compress_stream2(&mut output, &mut input, op).map_err(|_| Broken)?;
                let done = input.pos() == payload.len() && (step == Step::Take || left == 0);
                Ok(Stepped { taken: input.pos(), made: output.pos(), done })
            }
        }
    }
}

/// Where the head of a message says which level it was packed at, and what it says: level 1 is packed at
/// zlib's level 2 here (see `flate_level`), but was asked for, and RFC 1952 has a byte for the fastest way
/// (XFL), RFC 1950 two bits, with a check over them and the byte before.
fn mark(recipe: Recipe) -> Option<(u64, u8)> {
    match (recipe.algorithm, recipe.level) {
        (Algorithm::Gzip, 1) => Some((8, 4)),
        (Algorithm::Deflate, 1) => {
            let first = ((recipe.window.clamp(9, 15) - 8) << 4) | 8;
            Some((1, u8::try_from(31 - first * 256 % 31).unwrap_or(0)))
        }
        _ => None,
    }
}

fn flate(
    deflate: &mut Deflate,
    mark: Option<(u64, u8)>,
    payload: &[u8],
    room: &mut [u8],
    step: Step,
) -> Result<Stepped, Broken> {
    let flush = match step {
        Step::Take => DeflateFlush::NoFlush,
        Step::Flush => DeflateFlush::SyncFlush,
        Step::End => DeflateFlush::Finish,
    };
    let (before_in, before_out) = (deflate.total_in(), deflate.total_out());
    let status = deflate.compress(payload, room, flush).map_err(|_| Broken)?;
    let taken = usize::try_from(deflate.total_in() - before_in).unwrap_or(0);
    let made = usize::try_from(deflate.total_out() - before_out).unwrap_or(0);
    if let Some((at, byte)) = mark
        && let Some(at) = at.checked_sub(before_out).and_then(|at| usize::try_from(at).ok())
        && let Some(to) = room.get_mut(..made).and_then(|made| made.get_mut(at))
    {
        *to = byte;
    }
    let done = match step {
        Step::Take => taken == payload.len(),
        // Room that is left says that nothing more had to come out.
        Step::Flush => taken == payload.len() && (made < room.len() || status == Status::BufError),
        Step::End => status == Status::StreamEnd,
    };
    Ok(Stepped { taken, made, done })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(algorithm: Algorithm) -> Recipe {
        Recipe { algorithm, level: 1, memory_level: 8, window: 15 }
    }

    /// Packs in pieces of `size` into rooms of 4096 bytes, flushing behind each piece or not.
    fn pack(packer: &mut Packer, text: &[u8], size: usize, flush: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut run = |payload: &[u8], step| {
            let (mut from, mut rounds) = (0, 0);
            loop {
                let mut room = [0; 4096];
                let stepped = packer.step(&payload[from..], &mut room, step).expect("it goes on");
                from += stepped.taken;
                out.extend_from_slice(&room[..stepped.made]);
                rounds += 1;
                assert!(rounds < 10_000, "it gets nowhere");
                if stepped.done {
                    break;
                }
            }
        };
        for piece in text.chunks(size) {
            run(piece, Step::Take);
            if flush {
                run(&[], Step::Flush);
            }
        }
        run(&[], Step::End);
        out
    }

    fn unpack(algorithm: Algorithm, packed: &[u8]) -> Vec<u8> {
        let inflate = |header, bits| {
            let mut inflate = zlib_rs::Inflate::new(header, bits);
            let mut out = vec![0; 1 << 20];
            inflate.decompress(packed, &mut out, zlib_rs::InflateFlush::Finish).expect("sound");
            out.truncate(usize::try_from(inflate.total_out()).expect("small"));
            out
        };
        match algorithm {
            Algorithm::Identity => packed.to_vec(),
            Algorithm::Gzip => inflate(true, 31),
            Algorithm::Deflate => inflate(true, 15),
            Algorithm::RawDeflate => inflate(false, 15),
            Algorithm::Brotli => {
                let mut out = Vec::new();
                brotli::BrotliDecompress(&mut &*packed, &mut out).expect("sound");
                out
            }
            Algorithm::Zstd => {
                let mut out = vec![0; 1 << 20];
                let n = zstd_safe::decompress(&mut out[..], packed).expect("sound");
                out.truncate(n);
                out
            }
        }
    }

    #[test]
    fn what_is_packed_can_be_unpacked() {
        let text: Vec<u8> =
            (0..20_000u32).flat_map(|n| format!("line {}\n", n * 7 % 1000).into_bytes()).collect();
        for (_, algorithm) in Algorithm::NAMES {
            let mut packer = Packer::new(recipe(*algorithm)).expect("memory");
            for (size, flush) in [(1000, false), (1000, true), (100_000, false), (100_000, true)] {
                for text in [&text[..], b"x", b""] {
                    let packed = pack(&mut packer, text, size, flush);
                    assert_eq!(unpack(*algorithm, &packed), text, "{algorithm:?} {size} {flush}");
                    if text.len() > 1 && *algorithm != Algorithm::Identity {
                        assert!(packed.len() < text.len() / 2, "{algorithm:?}: {}", packed.len());
                    }
                    if !packer.reset() {
                        packer = Packer::new(recipe(*algorithm)).expect("memory");
                    }
                }
            }
        }
    }

    #[test]
    fn a_flush_brings_everything_out() {
        for (_, algorithm) in Algorithm::NAMES.iter().filter(|(_, a)| *a == Algorithm::Gzip) {
            let mut packer = Packer::new(recipe(*algorithm)).expect("memory");
            let mut room = [0; 1000];
            let first = packer.step(b"hello", &mut room, Step::Take).expect("fine");
            let (_, rest) = room.split_at_mut(first.made);
            let flushed = packer.step(b"", rest, Step::Flush).expect("fine");
            assert!(flushed.done);
            let mut inflate = zlib_rs::Inflate::new(true, 31);
            let mut out = [0; 100];
            let _ = inflate.decompress(
                &room[..first.made + flushed.made],
                &mut out,
                zlib_rs::InflateFlush::NoFlush,
            );
            assert_eq!(&out[..5], b"hello");
        }
    }

    #[test]
    fn level_1_says_that_it_is_the_fastest() {
        for (algorithm, window, head) in [
            (Algorithm::Gzip, 15, &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3][..]),
            (Algorithm::Deflate, 15, &[0x78, 0x01]),
            (Algorithm::Deflate, 9, &[0x18, 0x19]),
        ] {
            let mut packer = Packer::new(Recipe { window, ..recipe(algorithm) }).unwrap();
            // As it comes, three bytes at a time.
            let (mut room, mut out) = ([0; 3], Vec::new());
            for _ in 0..8 {
                let stepped = packer.step(b"", &mut room, Step::End).unwrap();
                out.extend_from_slice(&room[..stepped.made]);
            }
            assert!(out.starts_with(head), "{algorithm:?} {window}: {out:02x?}");
        }
    }
}
