core.register_action("t", { "http-req" }, function(txn)

    txn:set_var("txn.a", 7)
    txn:set_var("txn.b", "x")
    txn:set_var("txn.c", true)
    local all = { math.type(txn:get_var("txn.a")), txn:get_var("txn.b"), tostring(txn:get_var("txn.c")) }
    txn:unset_var("txn.b")
    all[4] = tostring(txn:get_var("txn.b"))
    all[5] = tostring(txn:get_var("txn.never"))
    txn:set_var("txn.r", table.concat(all, ","))
end)
