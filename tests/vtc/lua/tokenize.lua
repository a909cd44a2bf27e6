core.register_action("t", { "http-req" }, function(txn)

    local a = core.tokenize("This function, is. useful", "., ", true)
    local b = core.tokenize("a,,b", ",")
    txn:set_var("txn.r", table.concat(a, "|") .. "/" .. table.concat(b, "|"))
end)
