core.register_action("t", { "http-req" }, function(txn)

    txn:set_var("txn.r", "before")
    local x = nil
    x.y = 1
end)
