core.register_action("t", { "http-req" }, function(txn)

    local s = core.now()
    core.msleep(120)
    core.yield()
    local e = core.now()
    local ms = (e.sec - s.sec) * 1000 + (e.usec - s.usec) // 1000
    txn:set_var("txn.r", tostring(ms >= 110 and ms < 3000) .. txn.f:path())
end)
