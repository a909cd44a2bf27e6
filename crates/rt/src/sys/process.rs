//! The process: forking, becoming a daemon, its surroundings.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Pid, Signal as OsSignal, WaitOptions, WaitStatus};

/// Which side of a [`fork`] this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The old process; this is the id of the new one.
    Parent(i32),
    /// The new process.
    Child,
}

/// Splits the process in two.
///
/// # Errors
/// EAGAIN, ENOMEM; `Unsupported` if there are other threads, which would be missing in the child in the
/// middle of what they do.
pub fn fork() -> io::Result<Fork> {
    if std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() > 1) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "fork with several threads"));
    }
    // SAFETY: this is the only thread, so the child finds no lock held and no state half changed.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Leaves the terminal: a new session, and the standard descriptors lead to /dev/null. To be called in the
/// child of a [`fork`] whose parent exits.
///
/// # Errors
/// EPERM for a process that leads a group already.
pub fn detach_from_terminal() -> io::Result<()> {
    lead_session()?;
    silence_standard_streams()
}

/// Leaves the terminal's session and leads a new one; the standard descriptors stay.
///
/// # Errors
/// EPERM for a process that leads a group already.
pub fn lead_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// Leads the standard descriptors to /dev/null.
///
/// # Errors
/// If there is no /dev/null.
pub fn silence_standard_streams() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Confines the process to a folder, and goes to its root.
///
/// # Errors
/// EPERM without the privilege, ENOENT.
pub fn chroot(folder: &Path) -> io::Result<()> {
    rustix::process::chroot(folder)?;
    Ok(rustix::process::chdir("/")?)
}

/// Makes an empty folder without a name the root and the working directory (`chroot auto`).
///
/// # Errors
/// EPERM without the privilege; those of making a folder.
pub fn chroot_nowhere() -> io::Result<()> {
    let stem = std::env::temp_dir().join(format!("haproxy.{}", std::process::id()));
    let folder =
        (0..100).map(|n| stem.with_extension(format!("{}-{n}", std::process::id()))).find_map(|path| {
            match rustix::fs::mkdir(&path, Mode::RUSR | Mode::XUSR) {
                Ok(()) => Some(Ok(path)),
                Err(rustix::io::Errno::EXIST) => None,
                Err(e) => Some(Err(e)),
            }
        });
    let folder = folder.unwrap_or(Err(rustix::io::Errno::EXIST))?;
    let entered = rustix::process::chdir(&folder);
    rustix::fs::rmdir(&folder)?;
    entered?;
    rustix::process::chroot(".")?;
    Ok(rustix::process::chdir("/")?)
}

/// Writes the process's id and a line end to a file.
///
/// # Errors
/// Those of writing a file.
pub fn write_pidfile(path: &Path) -> io::Result<()> {
    std::fs::write(path, format!("{}\n", std::process::id()))
}

/// Allows a core dump of a process that changed its user (`set-dumpable`).
///
/// # Errors
/// If the kernel refuses.
pub fn set_dumpable() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}

/// Keeps the process from gaining rights by the programs that it runs: their setuid bits count for nothing.
///
/// # Errors
/// If the kernel refuses.
pub fn forbid_new_rights() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Sets the priority of this thread and of those that it starts, -20 to 19.
///
/// # Errors
/// If the kernel refuses.
pub fn set_priority(nice: i8) -> io::Result<()> {
    Ok(rustix::process::setpriority_process(None, nice.into())?)
}

/// Gives the calling thread a place of its own in the tree of files: where it goes the others don't.
///
/// # Errors
/// If the kernel refuses.
pub fn own_folder() -> io::Result<()> {
    // SAFETY: it concerns nothing but the folder, the root and the umask of this thread; no descriptor is
    // shared less than before.
    Ok(unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }?)
}

/// The name of this machine.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether a descriptor is a terminal.
pub fn is_terminal(fd: BorrowedFd<'_>) -> bool {
    rustix::termios::isatty(fd)
}

/// Whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    is_terminal(io::stdout().as_fd())
}

/// Bytes of memory that the process has in use (resident set).
pub fn resident_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Gives memory that was freed back to the system, where the allocator would keep it for later.
pub fn trim_memory() {
    // SAFETY: the call takes no pointer, and the allocator locks what it looks at.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}

/// CPU time that the process has used: user and system, in microseconds.
pub fn cpu_time() -> (u64, u64) {
    // SAFETY: rusage is plain integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one rusage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let micros = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    (micros(usage.ru_utime), micros(usage.ru_stime))
}

/// Sends a signal to a process; 0 only asks whether that would be possible.
///
/// # Errors
/// ESRCH if there is no such process, EPERM.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    if unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// The next child that has ended, without waiting: its id, and how.
///
/// # Errors
/// ECHILD if there are no children.
pub fn reap() -> io::Result<Option<(i32, Ended)>> {
    let Some((pid, status)) = rustix::process::wait(WaitOptions::NOHANG)? else { return Ok(None) };
    Ok(Some((pid.as_raw_nonzero().get(), ended(status))))
}

/// Waits for a child to end.
///
/// # Errors
/// ECHILD if it is no child of ours.
pub fn wait(pid: i32) -> io::Result<Ended> {
    loop {
        match rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(ended(status)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

fn ended(status: WaitStatus) -> Ended {
    match status.terminating_signal() {
        Some(signal) => Ended::Signal(signal),
        None => Ended::Exit(status.exit_status().unwrap_or(0)),
    }
}

/// Has this process get a signal when its parent ends.
///
/// # Errors
/// If the kernel refuses.
pub fn end_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(OsSignal::TERM))?)
}

/// Replaces this process by a program, with these arguments (the first is its name), and with one variable
/// more in its environment.
///
/// # Errors
/// Only returns if that fails.
pub fn exec_with(program: &Path, arguments: &[CString], name: &str, value: &str) -> io::Error {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let environment = std::env::vars_os().filter(|(known, _)| known != name).map(|(mut line, v)| {
        line.push("=");
        line.push(v);
        line.into_vec()
    });
    let lines = environment.chain([format!("{name}={value}").into_bytes()]).map(CString::new);
    let (Ok(environment), Ok(program)) =
        (lines.collect::<Result<Vec<_>, _>>(), CString::new(program.as_os_str().as_bytes()))
    else {
        return io::ErrorKind::InvalidInput.into();
    };
    let pointers = |list: &[CString]| {
        let mut pointers: Vec<_> = list.iter().map(|a| a.as_ptr()).collect();
        pointers.push(std::ptr::null());
        pointers
    };
    let (arguments, environment) = (pointers(arguments), pointers(&environment));
    // SAFETY: `program` is a C string and the lists are null-terminated lists of such, all alive during the
    // call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Takes a variable out of the environment, for nobody else to see. To be called before any thread is
/// started: with others about it does nothing.
pub fn take_variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    if std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() > 1) {
        return None;
    }
    // SAFETY: this is the only thread, so nobody reads the environment at the same time.
    unsafe { std::env::remove_var(name) };
    Some(value)
}
