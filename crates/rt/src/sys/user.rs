//! Users and groups.

use std::ffi::CString;
use std::io;

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

fn check(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
