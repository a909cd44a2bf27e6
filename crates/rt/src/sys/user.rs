//! Users and groups.

use std::ffi::CString;
use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets};

/// The id of a user, given by name.
pub fn user_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut room = vec![0 as libc::c_char; 16384];
    // SAFETY: passwd is integers and pointers, for which zero is a value.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and the room's length is given.
    unsafe { libc::getpwnam_r(name.as_ptr(), &mut entry, room.as_mut_ptr(), room.len(), &mut found) };
    (!found.is_null()).then_some(entry.pw_uid)
}

/// The id of a group, given by name.
pub fn group_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut room = vec![0 as libc::c_char; 16384];
    // SAFETY: group is integers and pointers, for which zero is a value.
    let mut entry: libc::group = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and the room's length is given.
    unsafe { libc::getgrnam_r(name.as_ptr(), &mut entry, room.as_mut_ptr(), room.len(), &mut found) };
    (!found.is_null()).then_some(entry.gr_gid)
}

/// The effective user of this process.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The effective group of this process.
pub fn effective_group() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Gives up all supplementary groups.
///
/// # Errors
/// EPERM without the privilege.
pub fn clear_groups() -> io::Result<()> {
    // SAFETY: an empty list is read from no memory.
    check(unsafe { libc::setgroups(0, std::ptr::null()) })
}

/// Changes the group of the process, all its threads included.
///
/// # Errors
/// EPERM without the privilege.
pub fn set_group(gid: u32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::setgid(gid) })
}

/// Changes the user of the process, all its threads included. Groups first: afterwards it may not.
///
/// # Errors
/// EPERM without the privilege.
pub fn set_user(uid: u32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::setuid(uid) })
}

/// The capabilities of a process that is not root, by their names in capabilities(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// CAP_NET_RAW
    NetRaw,
    /// CAP_NET_ADMIN
    NetAdmin,
    /// CAP_NET_BIND_SERVICE
    NetBindService,
    /// CAP_SYS_ADMIN
    SysAdmin,
}

impl Capability {
    /// The one that is called so.
    pub fn from_name(name: &str) -> Option<Capability> {
        Some(match name {
            "cap_net_raw" => Capability::NetRaw,
            "cap_net_admin" => Capability::NetAdmin,
            "cap_net_bind_service" => Capability::NetBindService,
            "cap_sys_admin" => Capability::SysAdmin,
            _ => return None,
        })
    }

    fn set(self) -> CapabilitySet {
        match self {
            Capability::NetRaw => CapabilitySet::NET_RAW,
            Capability::NetAdmin => CapabilitySet::NET_ADMIN,
            Capability::NetBindService => CapabilitySet::NET_BIND_SERVICE,
            Capability::SysAdmin => CapabilitySet::SYS_ADMIN,
        }
    }
}

/// Lets the capabilities survive the next change of the user, so that [`set_capabilities`] may choose of
/// them.
///
/// # Errors
/// If the kernel refuses.
pub fn keep_capabilities() -> io::Result<()> {
    Ok(rustix::thread::set_keep_capabilities(true)?)
}

/// Leaves this thread, and those that it starts, these capabilities and no others.
///
/// # Errors
/// EPERM for one that it does not have.
pub fn set_capabilities(of: &[Capability]) -> io::Result<()> {
    let set = of.iter().fold(CapabilitySet::empty(), |all, one| all | one.set());
    let sets = CapabilitySets { effective: set, permitted: set, inheritable: CapabilitySet::empty() };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

fn check(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
