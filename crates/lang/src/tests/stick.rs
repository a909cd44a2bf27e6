//! Stick tables in rules: what tracks, what counts, what is seen of it.

use crate::registry::Sets;
use crate::testing::Stage;

#[test]
fn nothing_is_seen_before_something_is_tracked() {
    let mut stage = Stage::new();
    for expr in
        ["sc0_conn_cnt", "sc_conn_cnt(0)", "sc0_key", "sc0_inc_gpc0", "sc0_trackers", "sc_gpc_rate(0,0)"]
    {
        assert_eq!(stage.value(expr), "none", "{expr}");
    }
    assert_eq!(stage.value("sc0_tracked"), "0");
    assert_eq!(stage.value("src_conn_cnt(be)"), "0");
    assert_eq!(stage.value("src,table_conn_cnt(be)"), "0");
    assert_eq!(stage.value("src,in_table(be)"), "0");
    assert_eq!(stage.value("src,table_expire(be)"), "none");
    assert_eq!(stage.value("src,table_expire(be,9)"), "9");
}

#[test]
fn tracking_counts_a_connection_and_a_request() {
    let mut stage = Stage::new();
    stage.pass(Sets::HTTP_REQ, "track-sc1 src");
    for (expr, value) in [
        ("sc1_conn_cnt", "1"),
        ("sc1_conn_cur", "1"),
        ("sc1_conn_rate", "1"),
        ("sc1_http_req_cnt", "1"),
        ("sc_http_req_rate(1)", "1"),
        ("sc1_sess_cnt", "0"),
        ("sc1_tracked", "1"),
        ("sc1_trackers", "1"),
        ("sc1_key", "192.0.2.1"),
        ("sc0_tracked", "0"),
        ("src_conn_cur(be)", "1"),
        ("src,in_table(be)", "1"),
        ("src,table_trackers(be)", "2"),
        ("src,table_expire(be)", "60000"),
        ("src,table_idle(be)", "0"),
        ("table_cnt(be)", "1"),
        ("table_avl(be)", "9"),
        ("sc1_http_req_cnt(arrays)", "0"),
        ("sc1_conn_cnt(be)", "1"),
    ] {
        assert_eq!(stage.value(expr), value, "{expr}");
    }
    // The same counter is not taken twice.
    stage.pass(Sets::HTTP_REQ, "track-sc1 int(7) table be");
    assert_eq!(stage.value("sc1_key"), "192.0.2.1");
}

#[test]
fn what_the_connection_tracks_is_seen_by_its_requests() {
    let mut stage = Stage::new();
    stage.pass(Sets::TCP_CONN, "track-sc0 src");
    assert_eq!(stage.value("sc0_conn_cnt"), "1");
    assert_eq!(stage.value("sc0_http_req_cnt"), "0");
    stage.txn.stick.borrow_mut().stop(0);
    assert_eq!(stage.value("sc0_conn_cur"), "1", "the request does not end it");
}

#[test]
fn counters_are_counted_by_fetches_converters_and_actions() {
    let mut stage = Stage::new();
    stage.pass(Sets::HTTP_REQ, "track-sc0 src");
    stage.pass(Sets::HTTP_REQ, "track-sc2 src table arrays");
    assert_eq!(stage.value("sc0_inc_gpc0"), "1");
    assert_eq!(stage.value("src_inc_gpc0(be)"), "2");
    assert_eq!(stage.value("src,table_inc_gpc0(be)"), "3");
    stage.pass(Sets::HTTP_RES, "sc-inc-gpc0(0)");
    assert_eq!(stage.value("sc0_get_gpc0"), "4");
    assert_eq!(stage.value("sc0_gpc0_rate"), "4");
    assert_eq!(stage.value("sc0_clr_gpc0"), "4");
    assert_eq!(stage.value("sc0_get_gpc0"), "0");
    stage.pass(Sets::TCP_REQ, "sc-inc-gpc1(0)");
    assert_eq!(stage.value("sc0_get_gpc1"), "1");
    stage.pass(Sets::HTTP_AFTER, "sc-set-gpt0(0) int(5),add(2)");
    assert_eq!(stage.value("sc0_get_gpt0"), "7");
    stage.pass(Sets::TCP_SESS, "sc-inc-gpc(1,2)");
    stage.pass(Sets::HTTP_REQ, "sc-add-gpc(1,2) 10");
    assert_eq!(stage.value("sc_get_gpc(1,2)"), "11");
    assert_eq!(stage.value("sc_gpc_rate(1,2)"), "11");
    assert_eq!(stage.value("sc2_get_gpc1"), "11", "elements of arrays answer for single counters");
    assert_eq!(stage.value("sc_inc_gpc(2,2)"), "1");
    assert_eq!(stage.value("src_inc_gpc(2,arrays)"), "2");
    assert_eq!(stage.value("src,table_inc_gpc(2,arrays)"), "3");
    assert_eq!(stage.value("src,table_clr_gpc(2,arrays)"), "3");
    assert_eq!(stage.value("src_get_gpc(9,arrays)"), "none");
    stage.pass(Sets::HTTP_REQ, "sc-set-gpt(1,2) 4294967297");
    assert_eq!(stage.value("sc_get_gpt(1,2)"), "1", "tags have 32 bits");
    assert_eq!(stage.value("src,table_gpt(1,arrays)"), "1");
    assert_eq!(stage.value("src_updt_conn_cnt(be)"), "2");
}

#[test]
fn what_is_wrong_with_an_action_is_said() {
    let mut stage = Stage::new();
    for (rule, text) in [
        ("track-sc9 src", "9 track-sc number exceeding 2 (tune.stick-counters-1) value"),
        ("track-scx src", "Wrong track-sc number 'x'"),
        ("track-sc0 src table", "missing table name"),
        ("track-sc0 src table nope", "unable to find table 'nope' referenced by track-sc0"),
        ("track-sc0 bool(1)", "stick-table 'be' uses a type incompatible with the 'track-sc0' rule"),
        ("sc-inc-gpc(0)", "Missing gpc ID 'sc-inc-gpc(0)'. Expects sc-inc-gpc(<GPC ID>,<Track ID>)"),
        (
            "sc-inc-gpc(0,9)",
            "invalid stick table track ID 'sc-inc-gpc(0,9)'. The max allowed ID is 2 (tune.stick-counters)",
        ),
        ("sc-inc-gpc0(9)", "invalid stick table track ID. The max allowed ID is 2 (tune.stick-counters)"),
    ] {
        let words: Vec<&str> = rule.split(' ').collect();
        let fault = stage.rule(Sets::HTTP_REQ, &words).err().map(|f| f.text);
        let missed = || match stage.names.missing.pop() {
            Some(crate::Missing::Rule(text)) => text,
            _ => String::new(),
        };
        let fault = fault.unwrap_or_else(missed);
        assert!(fault.ends_with(text), "{rule}: {fault}");
    }
}

#[test]
fn every_figure_is_seen_by_all_who_ask() {
    use stick::data::{Shape, TYPES};
    let mut stage = Stage::new();
    stage.pass(Sets::TCP_CONN, "track-sc1 src");
    let table = stage.names.tables[0].clone();
    for t in TYPES.iter().filter(|t| !t.array && t.shape != Shape::Text) {
        // Bytes are asked for in units of 1024, their rates are stored in units of ten.
        let (set, seen) = match t.name {
            "bytes_in_cnt" | "bytes_out_cnt" => (5000, "4".to_owned()),
            "bytes_in_rate" | "bytes_out_rate" => (7, "70".to_owned()),
            _ => (100 + t.data as u64, (100 + t.data as u64).to_string()),
        };
        {
            let held = stage.conn.stick.borrow();
            assert!(held.get(1).unwrap().row(5000).set(t.data, 0, set), "{}", t.name);
        }
        let sc = match t.name {
            "bytes_in_cnt" => "kbytes_in",
            "bytes_out_cnt" => "kbytes_out",
            "gpc0" => "get_gpc0",
            "gpc1" => "get_gpc1",
            "gpt0" => "get_gpt0",
            other => other,
        };
        let conv = if sc.starts_with("get_") { t.name } else { sc };
        assert_eq!(stage.value(&format!("src,table_{conv}(be)")), seen, "{conv}");
        if t.name != "server_id" {
            assert_eq!(stage.value(&format!("sc_{sc}(1)")), seen, "{sc}");
            assert_eq!(stage.value(&format!("sc1_{sc}")), seen, "{sc}");
            assert_eq!(stage.value(&format!("src_{sc}(be)")), seen, "{sc}");
            assert_eq!(stage.value(&format!("sc0_{sc}")), "none", "{sc}");
        }
    }
    assert_eq!(table.used(5000), 1);
}
