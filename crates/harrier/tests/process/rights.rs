//! What the process may do once it runs.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;

use crate::running::{DEFAULTS, Folder, PATIENCE, Running, is_root};

#[test]
fn behind_chroot_and_without_rights_it_still_logs() {
    if !is_root("behind_chroot_and_without_rights_it_still_logs") {
        return;
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.path("jail")).unwrap();
    let log = UnixDatagram::bind(folder.path("log")).unwrap();
    log.set_read_timeout(Some(PATIENCE)).unwrap();
    let config = format!(
        "global\n    chroot DIR/jail\n    user nobody\n    group nogroup\n    stats socket DIR/cli level admin user nobody mode 600\n    log DIR/log local0\n{DEFAULTS}frontend f\n    bind unix@DIR/f user nobody group nogroup mode 640\n    log global\n    log-format \"status %ST\"\n    http-request return status 200\n"
    );
    let program = Running::start(folder, &config, &[]);
    let proc = format!("/proc/{}", program.pid());
    let status = std::fs::read_to_string(format!("{proc}/status")).unwrap();
    let ids = |name: &str| status.lines().find(|l| l.starts_with(name)).unwrap().to_owned();
    let nobody = std::fs::metadata(program.folder.path("f")).unwrap();
    assert!(nobody.uid() != 0 && nobody.gid() != 0);
    let four = |id: u32| [id; 4].map(|i| i.to_string()).join("\t");
    assert_eq!(ids("Uid:"), format!("Uid:\t{}", four(nobody.uid())));
    assert_eq!(ids("Gid:"), format!("Gid:\t{}", four(nobody.gid())));
    assert_eq!(ids("Groups:").trim(), "Groups:");
    assert_eq!(std::fs::read_link(format!("{proc}/root")).unwrap(), program.folder.path("jail"));
    let mode = |name: &str| program.folder.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("f"), mode("cli")), (0o640, 0o600));
    // The path of the log socket does not exist where the process lives now.
    for _ in 0..2 {
        assert!(program.get("f").starts_with("HTTP/1.1 200"));
        let mut line = [0; 512];
        let n = log.recv(&mut line).unwrap();
        assert!(line[..n].ends_with(b"]: status 200\n"));
    }
}

#[test]
fn a_socket_inside_the_jail_is_the_one_that_is_meant() {
    if !is_root("a_socket_inside_the_jail_is_the_one_that_is_meant") {
        return;
    }
    let folder = Folder::new();
    let jail = folder.path("jail");
    let within = folder.path("").strip_prefix("/").unwrap().to_owned();
    std::fs::create_dir_all(jail.join(&within)).unwrap();
    let outside = UnixDatagram::bind(folder.path("log")).unwrap();
    let inside = UnixDatagram::bind(jail.join(&within).join("log")).unwrap();
    inside.set_read_timeout(Some(PATIENCE)).unwrap();
    let config = format!(
        "global\n    chroot DIR/jail\n    log DIR/log local0\n{DEFAULTS}frontend f\n    bind unix@DIR/f\n    log global\n    log-format \"status %ST\"\n    http-request return status 200\n"
    );
    let program = Running::start(folder, &config, &["-db"]);
    program.get("f");
    let mut line = [0; 512];
    assert!(inside.recv(&mut line).unwrap() > 0);
    outside.set_nonblocking(true).unwrap();
    assert!(outside.recv(&mut line).is_err());
}
