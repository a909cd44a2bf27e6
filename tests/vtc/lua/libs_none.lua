core.register_action("t", { "http-req" }, function(txn)

    txn:set_var("txn.r", tostring(string) .. tostring(os) .. tostring(io) .. tostring(debug) .. type(coroutine) .. type(pairs))
end)
