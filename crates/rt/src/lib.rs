//! Floor 1: the thread-per-core runtime. The one crate with system calls.
//!
//! One worker per thread, each with its own tasks ([`spawn`]), timers ([`Timer`]), sockets ([`Socket`],
//! [`Acceptor`]) and buffers ([`Buf`]). A connection lives and dies on one worker; what crosses threads does
//! so through inboxes ([`send_to`], [`RemoteNotify`]), as a detached value ([`Detached`]) or over a [`Quay`].
//! I/O is tried first and awaited only when the socket is not ready; nothing on the way of a request takes a
//! lock.
//!
//! Tasks are plain futures; their wakers are integers (see `waker`). The drivers, Linux and the simulated
//! world, are described in `driver`.

#![warn(missing_docs)]

mod addr;
mod buf;
mod clock;
mod datagram;
mod datagram_row;
mod driver;
mod executor;
mod inbox;
mod ktls;
mod listen;
mod listener;
mod local;
#[cfg(feature = "lua")]
pub mod lua;
mod netns;
mod notify;
mod pace;
mod pipe;
mod quay;
mod ranks;
mod recycle;
mod runtime;
mod shared_datagram;
pub mod sim;
mod socket;
mod sockinfo;
mod sockopt;
mod source;
pub mod sys;
mod timer;
mod waker;
mod worker;

pub use addr::Addr;
pub use base::time::{Mono, Wall};
pub use buf::{Buf, BufStats, DEFAULT_BUFSIZE, buf_stats, bufsize, set_bufsize, set_pool_limit, trim_bufs};
pub use clock::{kernel_micros, now, precise, random, wall};
pub use datagram::{Datagram, FdWriter};
pub use datagram_row::{DatagramRow, ROW};
pub use driver::epoll::{set_events_at_once, set_sleepless};
pub use inbox::Job;
pub use ktls::{Cipher, Direction, RecordKey, Support, allow_kernel_tls, support as kernel_tls};
pub use listen::{Lacking, ListenOptions, lacking, listening};
pub use listener::{Acceptor, Listener, Unheard, WeakListener};
pub use netns::{is_namespace_open, open_namespace};
pub use notify::{Notify, Receiver, RemoteNotify, Sender, oneshot};
pub use pipe::{Pipe, PipeStats, pipe_stats, pipes_held, set_pipe_limit, set_pipe_size};
pub use quay::{Claimed, Label, Moored, Quay};
pub use recycle::{BlockStats, RecycledBox, RecycledFuture, block_stats, boxed};
pub use runtime::{
    Heartbeat, Peers, Runtime, WorkerSpec, WorkerStats, cancel, current_task, give_way, is_alive,
    measure_waits, nice, peers, queued, renice, run, send_to, set_nice, spawn, start, stop_worker, take_wait,
    watched, worker_count, worker_index, worker_stats, yield_now,
};
pub use shared_datagram::{Inlet, SharedDatagram, WeakDatagram};
pub use socket::{Detached, Socket};
pub use sockinfo::{PeerCredentials, TcpInfo};
pub use sockopt::{ConnectOptions, Keepalive};
pub use source::Watched;
pub use timer::{Timer, sleep, sleep_until};
pub use waker::TaskId;
