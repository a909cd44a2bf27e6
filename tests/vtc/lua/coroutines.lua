core.register_action("t", { "http-req" }, function(txn)

    local c = coroutine.create(function(a) local b = coroutine.yield(a + 1) return b .. "!" end)
    local _, one = coroutine.resume(c, 1)
    local _, two = coroutine.resume(c, "x")
    txn:set_var("txn.r", one .. two .. coroutine.status(c))
end)
