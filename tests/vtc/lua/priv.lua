core.register_action("t", { "http-req" }, function(txn)

    local before = txn:get_priv()
    txn:set_priv({ n = 5 })
    txn:set_var("txn.r", tostring(before) .. txn:get_priv().n)
end)
