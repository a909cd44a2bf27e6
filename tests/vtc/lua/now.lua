core.register_action("t", { "http-req" }, function(txn)

    local n = core.now()
    txn:set_var("txn.r", tostring(n.sec > 1700000000) .. tostring(n.usec >= 0 and n.usec < 1000000) .. tostring(math.abs(n.sec - os.time()) <= 2))
end)
