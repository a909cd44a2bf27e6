core.register_action("t", { "http-req" }, function(txn)

    local c = txn.c
    txn:set_var("txn.r", c:lower("ABC") .. "|" .. c:base64("a") .. "|" .. c:field("a:b:c", 2, ":") .. "|" .. tostring(c:add(40, "2")) .. "|" .. type(txn.sc:add(1, "2")))
end)
