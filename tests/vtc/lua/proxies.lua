core.register_action("t", { "http-req" }, function(txn)

    local p = core.proxies["be"]
    local s = p.servers["s1"]
    txn:set_var("txn.r", p:get_name() .. p:get_cap() .. p:get_mode() .. s:get_name() .. tostring(s:is_backup()) .. s:get_weight() .. tostring(core.frontends["be"]) .. core.frontends["fe"]:get_cap() .. s:get_proxy():get_name() .. s:get_stats()["svname"] .. p:get_stats()["svname"])
end)
