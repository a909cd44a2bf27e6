core.register_action("t", { "http-req" }, function(txn)

    txn:set_var("txn.r", tostring(core.thread))
end)
