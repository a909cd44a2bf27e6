//! An entry for fuzzers: any bytes are a configuration, and whatever comes of it, it comes without a panic.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use lang::Registry;
use model::World;
use syntax::{Environment, Grammar, PlainBuild, SECTION_WORDS, Source};

use crate::{Options, compile, workers};

/// Compiles any bytes, as one file of configuration. Host names are looked up and files are opened as the
/// configuration says: run it where that is harmless.
pub fn config(data: &[u8]) {
    let grammar = Grammar { sections: SECTION_WORDS, facts: &PlainBuild };
    let mut environment = Environment::new();
    for (name, value) in crate::logformats::ENVIRONMENT {
        environment.set(name, value);
    }
    let reading = syntax::read(vec![Source::new("fuzz.cfg", data.to_vec())], environment, grammar);
    let options = Options::default();
    let world = Arc::new(World::new(workers(&reading, &options)));
    let _ = compile(reading, &Registry::standard(), world, &options);
}

/// Servers of which a file may say something: with and without checks, agents, slow starts, names and TLS.
const SERVERS: &str = "global
 server-state-file all
defaults
 timeout connect 1s
 timeout client 1s
 timeout server 1s
resolvers r
 nameserver n 127.0.0.1:53
backend one
 load-server-state-from-file global
 server s1 127.0.0.1:80 check slowstart 60s rise 3 fall 4
 server s2 127.0.0.1:81 check agent-check agent-port 9 backup
 server s3 srv.test:80 resolvers r init-addr last,none
 server s4 127.0.0.1:82 disabled weight 7
 server s5 127.0.0.1:83 ssl verify none no-check
backend two
 load-server-state-from-file local
 server-state-file-name one
 server s1 127.0.0.1:80 check slowstart 60s rise 3 fall 4
 server s2 127.0.0.1:81 check agent-check agent-port 9 backup
 server-template t 1-3 srv.test:80 resolvers r init-addr last,none
";

/// Any bytes are what two files say of servers; what comes of it is a state that a server can be in.
pub fn states(data: &[u8]) {
    let mut record = base::outside::Record::default();
    record.put("all", data.to_vec());
    record.put("one", data.to_vec());
    base::outside::replay(record);
    let grammar = Grammar { sections: SECTION_WORDS, facts: &PlainBuild };
    let source = Source::new("fuzz.cfg", SERVERS.as_bytes().to_vec());
    let reading = syntax::read(vec![source], Environment::new(), grammar);
    let options = Options::default();
    let outcome = compile(reading, &Registry::standard(), Arc::new(World::new(1)), &options);
    // There is nothing more to receive.
    let _ = base::outside::live();
    let program = outcome.program.expect("no file of states makes a configuration wrong");
    for proxy in program.proxies.beginning() {
        for server in proxy.servers.beginning() {
            let state = &server.state;
            assert!(state.weight.load(Relaxed) <= 256, "{}", server.name);
            let most = server.check.as_ref().map_or(i64::MAX, |check| i64::from(check.rise + check.fall) - 1);
            assert!((0..=most).contains(&state.health.load(Relaxed)), "{}", server.name);
            let both = model::server::admin::FMAINT | model::server::admin::FDRAIN;
            assert_ne!(state.admin() & both, both, "{}", server.name);
            let _ = state.unchanged_ms(base::time::Mono::ZERO, base::time::Mono::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that are right but for a field here and there.
    #[test]
    fn any_file_of_states_leaves_servers_in_a_state() {
        const ODD: [&str; 10] = ["", "-", "-1", "0", "3", "99999999999999999999", "x", "256", "::1", "#"];
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 11) as usize % below
        };
        for _ in 0..600 {
            let mut text = String::from("1\n# be_id be_name srv_id srv_name\n");
            for server in ["one 1 s1", "one 2 s2", "one 3 s3", "one 5 s5", "two 1 s1", "two 3 t1"] {
                let line = format!("3 {server} 127.0.0.9 2 0 1 1 100 15 3 4 6 0 0 0 srv.test 80 - 0 0 - - 0");
                let mut words: Vec<&str> = line.split(' ').collect();
                for _ in 0..random(4) {
                    let at = random(words.len());
                    words[at] = ODD[random(ODD.len())];
                }
                text.push_str(&words.join(" "));
                text.push('\n');
            }
            states(text.as_bytes());
        }
    }
}
