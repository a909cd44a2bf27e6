use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::*;

#[test]
fn descriptors_travel_with_bytes() {
    let (a, b) = socket_pair().unwrap();
    let (mut kept, sent) = UnixStream::pair().unwrap();
    let sent = OwnedFd::from(sent);
    assert_eq!(send_fds(a.as_fd(), b"x", &[sent.as_fd(), sent.as_fd()]).unwrap(), 1);
    drop(sent);
    let (mut byte, mut fds) = ([0; 8], Vec::new());
    assert_eq!(recv_fds(b.as_fd(), &mut byte, &mut fds).unwrap(), 1);
    assert_eq!(fds.len(), 2);
    rustix::io::write(&fds[1], b"through").unwrap();
    drop(fds);
    let mut text = String::new();
    kept.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through");
}

#[test]
fn an_inherited_number_must_be_open() {
    assert_eq!(inherited(-1).unwrap_err().raw_os_error(), Some(libc::EBADF));
    assert_eq!(inherited(1 << 20).unwrap_err().raw_os_error(), Some(libc::EBADF));
    assert!(inherited(2).is_ok());
}

#[test]
fn root_has_number_zero_and_strangers_none() {
    assert_eq!((user_id("root"), group_id("root")), (Some(0), Some(0)));
    assert_eq!((user_id("no such user"), group_id("no\0group")), (None, None));
}

#[test]
fn a_limit_that_is_set_is_in_force() {
    let (current, maximum) = Limit::Core.get();
    Limit::Core.set(Some(0)).unwrap();
    assert_eq!(Limit::Core.get(), (Some(0), maximum));
    Limit::Core.set(current).unwrap();
}

#[test]
fn the_surroundings_make_sense() {
    assert!(!hostname().is_empty());
    assert!(resident_memory().unwrap() > 100_000);
    assert!(!allowed_cpus().unwrap().is_empty());
    assert!(resolve("127.0.0.1").unwrap().contains(&"127.0.0.1".parse().unwrap()));
    assert_eq!(fork().unwrap_err().kind(), std::io::ErrorKind::Unsupported, "tests have several threads");
}

#[test]
fn the_time_of_a_thread_is_the_time_that_it_ran() {
    let (own, began) = (super::thread_number(), super::thread_time(super::thread_number()).unwrap());
    let ran = || super::thread_time(own).unwrap() - began;
    while ran() < std::time::Duration::from_millis(20) {
        std::hint::black_box(began);
    }
    // Another thread is asked as well as one's own; one that has not begun is none.
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(ran() >= std::time::Duration::from_millis(20)));
    });
    assert_eq!(super::thread_time(0), None);
}
