core.register_action("t", { "http-req" }, function(txn)

    txn:set_var("txn.r", "before")
    local t = {}
    for i = 1, 1e8 do t[i] = string.rep("x", 10000) .. i end
end)
