-- What is said of calls that are wrong: the number of arguments, then what they are.
local function told(call, ...)
    local f = load("local o = ... return function(...) local r = table.pack(" .. call .. ") return table.unpack(r, 1, r.n) end",
        "=x")(...)
    local all = table.pack(pcall(f))
    for i = 1, all.n do all[i] = tostring(all[i]) end
    return table.concat(all, " ")
end
core.register_action("t", { "http-req" }, function(txn)
    local all = {}
    local function add(call, o) all[#all + 1] = call .. ": " .. told(call, o) end
    add("core.log(1)") add("core.Debug()") add("core.Info({})") add("core.get_patref('none')")
    add("core.add_acl('none', 'x')") add("core.set_map('none', 'x', 'y')") add("core.get_var('txn.x')")
    add("core.tokenize('a b', ' ', 'x')") add("core.parse_addr()") add("core.match_addr(1, 2)")
    add("core.event_sub({'none'}, print)") add("core.register_cli({}, 'x', print)")
    add("Map.new('none', 1)") add("Map.new('none', 99)") add("Regex.new('a(', true)") add("Regex.new('a(b)(c)?', true)")
    add("ACME.challenge_ready('none', 'x')") add("CertCache.set('x')") add("CertCache.set{}")
    add("o:get_var()", txn) add("o:set_var('txn.x')", txn) add("o:set_loglevel(9)", txn) add("o:Debug()", txn)
    add("o:set_priv()", txn) add("o.http:req_add_header('x')", txn) add("o.http:req_rep_value('x')", txn)
    add("o.req:append('x')", txn) add("o.req:input(1)", txn) add("o.req:set()", txn)
    add("o.f:path('x')", txn) add("o.f:req_hdr('x', 'y')", txn) add("o.c:lower('x', 'y')", txn) add("o.c:lower(1.5)", txn)
    local r = txn:reply{ status = 404 }
    add("o:set_status(1)", r) add("o:add_header('x')", r) add("o.reason", r)
    local proxies = core.backends
    proxies.none = 1
    add("o.none", proxies) add("o.be.uuid", proxies) add("o.be.servers.s1:get_rid()", proxies)
    add("o.be.servers.none", proxies) add("o:set_weight()", proxies.be.servers.s1)
    for name, proxy in pairs(proxies) do all[#all + 1] = name .. " " .. proxy.name .. " " .. tostring(proxy.servers) end
    add("o:push(1, 2)", core.queue())
    local ok, regex = Regex.new("a(b)?(c)?", true)
    add("#select(2, o:match('xab'))", regex) add("o:match('z') == false", regex)
    txn:done(txn:reply{ status = 200, body = table.concat(all, "\n") .. "\n" })
end)
