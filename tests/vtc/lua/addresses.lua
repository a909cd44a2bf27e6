core.register_action("t", { "http-req" }, function(txn)

    local a, b, c = core.parse_addr("127.0.0.1/32"), core.parse_addr("127.0.0.0/8"), core.parse_addr("::1")
    txn:set_var("txn.r", tostring(core.match_addr(a, b)) .. tostring(core.match_addr(b, c)) .. tostring(core.parse_addr("nonsense") == nil))
end)
