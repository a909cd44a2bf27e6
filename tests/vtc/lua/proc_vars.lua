core.register_action("t", { "http-req" }, function(txn)

    txn:set_var("proc.n", 5)
    txn:set_var("txn.r", tostring(core.get_var("proc.n")) .. tostring(core.get_var("proc.zz")) .. tostring(core.get_var("proc.conf")))
end)
