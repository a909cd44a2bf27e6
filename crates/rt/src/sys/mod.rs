//! What a process asks of its system: processors, users, limits, signals, inherited descriptors.
//!
//! Nothing here is on the way of a request, and little of it exists in a simulated world.

mod cpu;
mod fds;
mod limits;
mod process;
mod program;
mod resolve;
mod signal;
#[cfg(test)]
mod tests;
mod user;
mod zone;

pub use cpu::{allowed_cpus, cpu_usage, set_affinity};
pub(crate) use cpu::{thread_number, thread_time};
pub use fds::{
    Bound, MAX_FDS, SocketFacts, bound, claim, fill_table, inherited, inherited_addr, listen_fds, recv_fds,
    send_fds, set_inheritable, socket_facts, socket_pair,
};
pub use limits::{Limit, is_local};
pub use process::{
    Ended, Fork, chroot, chroot_nowhere, cpu_time, detach_from_terminal, end_with_parent, exec_with,
    forbid_new_rights, fork, hostname, is_terminal, kill, lead_session, own_folder, reap, resident_memory,
    set_dumpable, set_priority, silence_standard_streams, stdout_is_terminal, take_variable, trim_memory,
    wait, write_pidfile,
};
pub use program::{ProgramEnd, ProgramSpec, run_program};
pub use resolve::resolve;
pub use signal::{Signal, Signals, block_signals, unblock_signals};
pub use user::{
    Capability, clear_groups, effective_group, effective_user, group_id, keep_capabilities, set_capabilities,
    set_group, set_user, user_id,
};
pub use zone::local_offset;
