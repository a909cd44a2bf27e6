//! The words of the command line (management guide, chapter 3), for `harrier help` and the reference. What
//! they do is in [`crate::args`]; a test sees that each word here is taken there.

/// One word of the command line.
pub struct Flag {
    /// The word.
    pub name: &'static str,
    /// What stands behind it.
    pub takes: &'static str,
    /// What it does.
    pub doc: &'static str,
}

const fn flag(name: &'static str, takes: &'static str, doc: &'static str) -> Flag {
    Flag { name, takes, doc }
}

/// All words in order of the alphabet, capitals behind.
pub const FLAGS: &[Flag] = &[
    flag("--", "<cfgfile>...", "All words behind it are configuration files."),
    flag("-4", "", "Have resolvers ask for addresses of IPv4 only, whatever dns-accept-family says."),
    flag("-c", "", "Check the configuration and exit: 0 if it is good, 1 if not; with -V it says so."),
    flag(
        "-cc",
        "<condition>",
        "Evaluate a condition of '.if': exit code 0 if it holds, 1 if not, 2 if it is wrong.",
    ),
    flag(
        "-d",
        "",
        "Stay in the foreground and print what happens to streams, and heads as they came, before rules change them.",
    ),
    flag("-db", "", "Stay in the foreground, whatever 'daemon' and -D say."),
    flag("-dA", "<file>", "Write an archive (tar) of the program and the libraries that it uses."),
    flag(
        "-dC",
        "[[<key>],line]",
        "Print the configuration as it was read, and check it; with a key, names and addresses are hashed, with 'line' lines are numbered.",
    ),
    flag("-dc", "", "Print the processors that each thread runs on."),
    flag("-dD", "", "Also tell what is only doubtful about the configuration."),
    flag("-de", "", "No effect: epoll is the one way to wait for events."),
    flag("-dF", "", "Bodies do not go through pipes, as with -dS."),
    flag("-dG", "", "No effect: names are always looked up with getaddrinfo."),
    flag("-dI", "", "As 'insecure-fork-wanted': programs may be run while traffic is served."),
    flag("-dK", "<class>[,<class>]*", "Print the keywords of classes; -dKhelp lists them."),
    flag("-dk", "", "No effect: epoll is the one way to wait for events."),
    flag("-dL", "", "Print the libraries that the program uses."),
    flag("-dM", "[<options>]", "No effect: it is about the allocator of HAProxy."),
    flag("-dp", "", "No effect: epoll is the one way to wait for events."),
    flag("-dR", "", "No SO_REUSEPORT: a second process can't listen where one does."),
    flag("-dr", "", "Go on when the name of a server leads to no address."),
    flag("-dS", "", "No splicing: bodies do not go through pipes."),
    flag("-dT", "", "The kernel seals no TLS records (ktls)."),
    flag("-dt", "[<source>[:<level>[:<verbosity>]],...]", "Traces to standard error (-dt help)."),
    flag("-dV", "", "Servers' certificates are not verified unless the server says so."),
    flag("-dv", "", "No effect: epoll is the one way to wait for events."),
    flag("-dW", "", "A warning is an error."),
    flag("-dZ", "", "Bodies do not go through pipes, as with -dS."),
    flag(
        "-f",
        "<cfgfile|cfgdir>",
        "A configuration file, or a folder whose files that end in .cfg are read by name.",
    ),
    flag("-m", "<megabytes>", "Limit of memory."),
    flag("-n", "<number>", "Most connections of the process, as 'maxconn' of 'global'."),
    flag("-p", "<file>", "The process's number is written to this file."),
    flag("-q", "", "Say nothing."),
    flag("-sf", "<pid>...", "Once this process listens, tell these to finish what they do and go (SIGUSR1)."),
    flag("-st", "<pid>...", "Once this process listens, tell these to stop at once (SIGTERM)."),
    flag("-v", "", "Print the version; -vq, -vqs and -vqb print parts of it."),
    flag("-vv", "", "Print the version and what was built in."),
    flag(
        "-x",
        "<socket>",
        "Take the listening sockets of the process behind this one of its runtime API ('expose-fd listeners').",
    ),
    flag("-C", "<folder>", "Change to this folder before files are read."),
    flag("-D", "", "Go to the background once the configuration is good and the sockets are open."),
    flag("-L", "<name>", "Name of the local peer; the host's name unless said."),
    flag("-N", "<number>", "Most connections of a proxy that says no 'maxconn'."),
    flag(
        "-S",
        "<address>[,<option>]*",
        "Where the master takes commands, with words of a 'bind' line; needs -W.",
    ),
    flag("-V", "", "Say more; it takes -q back."),
    flag("-W", "", "A master process starts a worker, watches it, and reloads on SIGUSR2 or SIGHUP."),
    flag("-Ws", "", "As -W, and the service manager is told of starts, reloads and the end."),
];
