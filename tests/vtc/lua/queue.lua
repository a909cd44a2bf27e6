local q = core.queue()
core.register_action("t", { "http-req" }, function(txn)

    q:push("a") q:push(2) q:push({ x = "t" })
    local ok = pcall(function() q:push(nil) end)
    txn:set_var("txn.r", q:size() .. q:pop() .. q:pop() .. q:pop().x .. tostring(q:pop()) .. q:size() .. tostring(ok))
end)
