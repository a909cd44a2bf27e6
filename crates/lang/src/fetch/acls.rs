//! ACL keywords: names that stand for a fetch and a match method (`path_beg` is `path -m beg`).
//!
//! Most come in eight variants: the table is put together from the bases when
//! it is compiled.

use pattern::Kind;

use crate::entry::{AclDef, Own};

/// Another name of a fetch, which is matched as that is.
const fn alias(name: &'static str, fetch: &'static str, kind: Kind) -> AclDef {
    AclDef { name, fetch, kind, own: Own::Nothing }
}

const fn acl(name: &'static str, fetch: &'static str, kind: Kind) -> AclDef {
    AclDef { name, fetch, kind, own: Own::Kind }
}

/// A keyword that is matched as no other is.
const fn special(name: &'static str, kind: Kind) -> AclDef {
    AclDef { name, fetch: name, kind, own: Own::Manner }
}

/// The eight variants of one base, given their names.
const fn family(names: [&'static str; 8], fetch: &'static str) -> [AclDef; 8] {
    let [exact, beg, dir, dom, end, len, reg, sub] = names;
    [
        alias(exact, fetch, Kind::Str),
        acl(beg, fetch, Kind::Beg),
        acl(dir, fetch, Kind::Dir),
        acl(dom, fetch, Kind::Dom),
        acl(end, fetch, Kind::End),
        acl(len, fetch, Kind::Len),
        acl(reg, fetch, Kind::Reg),
        acl(sub, fetch, Kind::Sub),
    ]
}

const BASE: [AclDef; 8] = family(
    ["base", "base_beg", "base_dir", "base_dom", "base_end", "base_len", "base_reg", "base_sub"],
    "base",
);
const COOK: [AclDef; 8] = family(
    ["cook", "cook_beg", "cook_dir", "cook_dom", "cook_end", "cook_len", "cook_reg", "cook_sub"],
    "req.cook",
);
const HDR: [AclDef; 8] =
    family(["hdr", "hdr_beg", "hdr_dir", "hdr_dom", "hdr_end", "hdr_len", "hdr_reg", "hdr_sub"], "req.hdr");
const PATH: [AclDef; 8] = family(
    ["path", "path_beg", "path_dir", "path_dom", "path_end", "path_len", "path_reg", "path_sub"],
    "path",
);
const SCOOK: [AclDef; 8] = family(
    ["scook", "scook_beg", "scook_dir", "scook_dom", "scook_end", "scook_len", "scook_reg", "scook_sub"],
    "res.cook",
);
const SHDR: [AclDef; 8] = family(
    ["shdr", "shdr_beg", "shdr_dir", "shdr_dom", "shdr_end", "shdr_len", "shdr_reg", "shdr_sub"],
    "res.hdr",
);
const URL: [AclDef; 8] =
    family(["url", "url_beg", "url_dir", "url_dom", "url_end", "url_len", "url_reg", "url_sub"], "url");
const URLP: [AclDef; 8] = family(
    ["urlp", "urlp_beg", "urlp_dir", "urlp_dom", "urlp_end", "urlp_len", "urlp_reg", "urlp_sub"],
    "urlp",
);

const SINGLE: [AclDef; 13] = [
    special("http_auth_group", Kind::Str),
    special("method", Kind::Str),
    alias("payload", "req.payload", Kind::Bin),
    alias("payload_lv", "req.payload_lv", Kind::Bin),
    alias("req.ssl_ver", "req.ssl_ver", Kind::Version),
    alias("req_rdp_cookie", "req.rdp_cookie", Kind::Str),
    alias("req_rdp_cookie_cnt", "req.rdp_cookie_cnt", Kind::Int),
    alias("req_ssl_sni", "req.ssl_sni", Kind::Str),
    alias("req_ssl_ver", "req.ssl_ver", Kind::Version),
    alias("req_ver", "req.ver", Kind::Str),
    alias("resp_ver", "res.ver", Kind::Str),
    acl("ssl_fc_sni_end", "ssl_fc_sni", Kind::End),
    acl("ssl_fc_sni_reg", "ssl_fc_sni", Kind::Reg),
];

const COUNT: usize = 8 * 8 + SINGLE.len();

/// All of them.
pub(super) const ACLS: &[AclDef] = &{
    const FAMILIES: [&[AclDef; 8]; 8] = [&BASE, &COOK, &HDR, &PATH, &SCOOK, &SHDR, &URL, &URLP];
    let mut all = [const { acl("", "", Kind::Str) }; COUNT];
    let mut i = 0;
    while i < COUNT {
        all[i] = if i < 64 { FAMILIES[i / 8][i % 8] } else { SINGLE[i - 64] };
        i += 1;
    }
    all
};
