core.register_action("t", { "http-req" }, function(txn)

    txn:set_var("txn.r", "before")
    while true do end
end)
