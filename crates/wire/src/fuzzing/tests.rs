//! The seeds of `fuzz/seeds` pass, so a finding that is kept there stays mended without a fuzzer at hand.

use std::path::Path;

fn each_seed(target: &str, entry: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut seen = 0;
    for file in std::fs::read_dir(&folder).expect("a folder of seeds").flatten() {
        let data = std::fs::read(file.path()).expect("a seed");
        entry(&data);
        // What is cut short or has one bit changed is hostile enough for a test.
        for at in 0..data.len().min(400) {
            entry(&data[..at]);
            let mut changed = data.clone();
            changed[at] ^= 1 << (at % 8);
            entry(&changed);
        }
        seen += 1;
    }
    assert!(seen > 3, "{seen} seeds in {}", folder.display());
}

#[test]
fn requests() {
    each_seed("http1_request", super::http1_request);
}

#[test]
fn responses() {
    each_seed("http1_response", super::http1_response);
}

#[test]
fn chunked_bodies() {
    each_seed("chunk", super::chunk);
}

#[test]
fn proxy_headers() {
    each_seed("proxy", super::proxy);
}

#[test]
fn frames_of_http2() {
    each_seed("h2_frames", super::h2_frames);
}

#[test]
fn header_blocks() {
    each_seed("hpack", super::hpack);
}

#[test]
fn messages_that_become_http1() {
    each_seed("h2_to_h1", super::h2_to_h1);
}

#[test]
fn responses_that_change_their_version() {
    each_seed("response_to_h2", super::response_to_h2);
}

#[test]
fn requests_that_change_their_version() {
    each_seed("http1_request", super::h1_to_h2);
}

#[test]
fn answers_of_name_servers() {
    each_seed("dns", super::dns);
}

#[test]
fn what_caches_keep() {
    each_seed("caching", super::caching);
}

#[test]
fn messages_of_syslog() {
    each_seed("syslog", super::syslog);
}

#[test]
fn replies_of_mailers() {
    each_seed("smtp", super::smtp);
}

#[test]
fn frames_of_spoe_agents() {
    each_seed("spop", super::spop);
}

#[test]
fn fastcgi_responders() {
    each_seed("fcgi", super::fcgi);
}
