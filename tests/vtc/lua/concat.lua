core.register_action("t", { "http-req" }, function(txn)

    local c = core.concat()
    for i = 1, 3 do c:add("x" .. i) end
    c:add("#")
    txn:set_var("txn.r", c:dump())
end)
