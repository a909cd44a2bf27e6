//! Exit codes and texts of the command line (management guide, chapter 3).

use std::process::Command;

use crate::running::{DEFAULTS, Folder, PROGRAM, run, stderr, stdout};

fn good(folder: &Folder) -> String {
    folder.file("good.cfg", &format!("{DEFAULTS}listen f\n    bind 127.0.0.1:1\n"))
}

/// A proxy without timeouts is worth a warning.
fn odd(folder: &Folder) -> String {
    folder.file("odd.cfg", "listen g\n    mode http\n    bind 127.0.0.1:1\n")
}

#[test]
fn a_check_answers_with_its_exit_code_and_few_words() {
    let folder = Folder::new();
    let (good, odd) = (good(&folder), odd(&folder));
    let bad = folder.file("bad.cfg", "listen f\n    bnd :80\n    timeout clint 1s\n");
    let cases: [(&[&str], i32, &str); 9] = [
        (&["-c", "-f", &good], 0, ""),
        (&["-c", "-V", "-f", &good], 0, "Configuration file is valid\n"),
        (&["-c", "-V", "-q", "-f", &good], 0, "Configuration file is valid\n"),
        (&["-c", "-q", "-f", &good], 0, ""),
        (&["-c", "-f", &odd], 0, "Warnings were found.\n"),
        (&["-c", "-V", "-f", &odd], 0, "Warnings were found.\nConfiguration file is valid\n"),
        (&["-c", "-dW", "-f", &odd], 1, ""),
        (&["-c", "-f", &bad], 1, ""),
        (&["-c", "-f", "/nonexistent"], 1, ""),
    ];
    for (arguments, code, text) in cases {
        let output = run(arguments);
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(code), text), "{arguments:?}");
    }
    let errors = stderr(&run(&["-c", "-f", &bad]));
    assert!(errors.contains("bad.cfg:2]") && errors.contains("bad.cfg:3]"), "{errors}");
    assert!(stderr(&run(&["-c", "-q", "-f", &odd])).is_empty());
    assert!(stderr(&run(&["-c", "-dW", "-f", &odd])).contains("'zero-warning' is set. Aborting."));
}

#[test]
fn a_condition_is_read_as_the_words_of_a_line() {
    let home = std::env::var("HOME").unwrap();
    let quoted = format!("streq(\"$HOME\",{home})");
    let cases = [
        (&*quoted, 0),
        (r#"streq("a\x20b","a b")"#, 0),
        (r"streq('$HOME',a)", 1),
        (r#""true""#, 2),
        (r#"streq("a"#, 2),
        ("true # no comment", 2),
    ];
    for (condition, code) in cases {
        assert_eq!(run(&["-cc", condition]).status.code(), Some(code), "{condition}");
    }
}

#[test]
fn files_and_folders_are_read_in_order() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("conf")).unwrap();
    folder.file("conf/20.cfg", "listen f\n    bind 127.0.0.1:1\n");
    folder.file("conf/10.cfg", DEFAULTS);
    folder.file("conf/.hidden.cfg", "nonsense\n");
    folder.file("conf/notes.txt", "nonsense\n");
    let conf = folder.text("conf");
    let second = folder.file("second", "frontend g\n    bind 127.0.0.1:2\n");
    for arguments in [vec!["-c", "-f", &conf, "-f", &second], vec!["-c", "-f", &conf, "--", &second]] {
        let output = run(&arguments);
        assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    }
    // Without the timeouts of the folder the second file alone is worth a warning.
    assert!(stderr(&run(&["-c", "-f", &second])).contains("missing timeouts"));
    let inside = run(&["-C", &conf, "-c", "-f", "10.cfg", "-f", "20.cfg"]);
    assert!(inside.status.success(), "{}", stderr(&inside));
    let nowhere = run(&["-C", "/nonexistent", "-c", "-f", "10.cfg"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(stderr(&nowhere).ends_with("directory /nonexistent : No such file or directory\n"));
}

#[test]
fn nothing_to_do_shows_the_usage() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("empty")).unwrap();
    let empty = folder.text("empty");
    let cases: [&[&str]; 6] = [&[], &["-c"], &["-c", "-f", &empty], &["x.cfg"], &["-f"], &["-c", "-z"]];
    for arguments in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(stdout(&output).starts_with("Harrier version "), "{arguments:?}");
        assert!(stderr(&output).contains("Usage : harrier [-f <cfgfile|cfgdir>]*"), "{arguments:?}");
    }
}

#[test]
fn a_configuration_without_listeners_does_not_start() {
    let folder = Folder::new();
    let file = folder.file("none.cfg", "global\n    maxconn 10\n");
    let output = run(&["-db", "-f", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("No enabled listener found (check for 'bind' directives) ! Exiting."));
    assert_eq!(run(&["-c", "-f", &file]).status.code(), Some(0));
}

#[test]
fn conditions_are_evaluated() {
    for (condition, code) in [("1", 0), ("version_atleast(3.0)", 0), ("0", 1), ("nonsense", 2)] {
        assert_eq!(run(&["-cc", condition]).status.code(), Some(code), "{condition}");
    }
}

#[test]
fn versions_have_the_shape_that_tools_read() {
    let full = stdout(&run(&["-vv"]));
    for part in
        ["\nStatus: ", "\nRunning on: Linux ", "\nFeature list : ", "+EPOLL", "\nAvailable polling systems :"]
    {
        assert!(full.contains(part), "{part:?} in {full}");
    }
    let plain = stdout(&run(&["-v"]));
    assert!(full.starts_with(&plain) && plain.contains("compatible with HAProxy version 3.5.0\n"), "{plain}");
    assert_eq!(stdout(&run(&["-vqs"])), "3.5.0\n");
    assert_eq!(stdout(&run(&["-vqb"])), "3.5\n");
}

#[test]
fn under_haproxys_name_it_says_haproxy() {
    let folder = Folder::new();
    let link = folder.path("haproxy");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    let output = Command::new(&link).arg("-v").output().unwrap();
    assert!(stdout(&output).starts_with("HAProxy version 3.5.0-harrier-"), "{}", stdout(&output));
    let usage = Command::new(&link).output().unwrap();
    assert!(stderr(&usage).contains("Usage : haproxy "));
}

#[test]
fn the_name_of_this_peer_is_given_once() {
    let folder = Folder::new();
    let named = folder
        .file("named.cfg", &format!("global\n    localpeer a\n{DEFAULTS}listen f\n    bind 127.0.0.1:1\n"));
    assert_eq!(run(&["-c", "-f", &named]).status.code(), Some(0));
    let twice = run(&["-L", "b", "-c", "-f", &named]);
    assert_eq!(twice.status.code(), Some(1));
    let text = "'localpeer' ignored since it is already set by using the '-L' command line argument.";
    assert!(stderr(&twice).contains(text), "{}", stderr(&twice));
}

#[test]
fn lists_come_with_a_check() {
    let folder = Folder::new();
    let good = good(&folder);
    let list = |word: &str| stdout(&run(&[word, "-q", "-c", "-f", &good]));
    assert!(list("-dKhelp").starts_with("# List of supported keyword classes:\nall: "));
    assert!(list("-dKhelp").ends_with("\nsvc: service names\n"));
    assert!(list("-dKcnv").contains("base64"));
    assert_eq!(list("-dKsvc"), "# List of registered service names:\nprometheus-exporter\n");
    // The configuration is told to whoever did not ask for silence.
    let dump = |word: &str| stdout(&run(&[word, "-f", &good]));
    assert!(dump("-dC").contains("listen f \n\tbind 127.0.0.1:1 \n"));
    assert!(!dump("-dC1234").contains("listen f") && !dump("-dC1234").is_empty());
    assert_eq!(list("-dC"), "");
    assert!(list("-dL").starts_with("List of loaded object files:\n/"));
}

#[test]
fn a_master_socket_needs_a_master() {
    let folder = Folder::new();
    let good = good(&folder);
    let alone = run(&["-c", "-S", "/tmp/unused", "-f", &good]);
    assert_eq!(alone.status.code(), Some(1));
    assert!(stderr(&alone).contains("master-worker mode (-W) is not enabled."));
    assert!(run(&["-c", "-W", "-S", "/tmp/unused", "-f", &good]).status.success());
}

#[test]
fn unresolved_names_may_be_passed_over() {
    let folder = Folder::new();
    let text = format!("{DEFAULTS}listen f\n    bind 127.0.0.1:1\n    server s no.such.name.invalid:80\n");
    let file = folder.file("names.cfg", &text);
    assert_eq!(run(&["-c", "-f", &file]).status.code(), Some(1));
    assert!(run(&["-c", "-dr", "-f", &file]).status.success());
}

/// `harrier -c ... | head`, and a full disk: the exit code is still the truth.
#[test]
fn output_that_nobody_takes_changes_no_exit_code() {
    let folder = Folder::new();
    let good = good(&folder);
    let bad = folder.file("bad.cfg", &"nosuch\n".repeat(50));
    let cases: [(&[&str], i32); 8] = [
        (&["-c", "-V", "-f", &good], 0),
        (&["-c", "-V", "-dKall", "-f", &good], 0),
        (&["-c", "-f", &bad], 1),
        (&["-v"], 0),
        (&["-vv"], 0),
        (&["-h"], 1),
        (&["explain"], 1),
        (&["help", "--markdown"], 0),
    ];
    for (arguments, code) in cases {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(PROGRAM);
        command.args(arguments).stdout(writer.try_clone().unwrap()).stderr(writer);
        assert_eq!(command.status().unwrap().code(), Some(code), "{arguments:?}, the reader is gone");
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(arguments).stdout(full.try_clone().unwrap()).stderr(full);
        assert_eq!(command.status().unwrap().code(), Some(code), "{arguments:?}, the disk is full");
    }
}
