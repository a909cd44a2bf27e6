core.register_action("t", { "http-req" }, function(txn)

    local n, t = 0, {}
    for i = 1, 300000 do n = n + 1 t[i % 10] = i end
    txn:set_var("txn.r", n .. "," .. t[0])
end)
