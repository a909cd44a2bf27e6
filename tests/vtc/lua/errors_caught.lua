core.register_action("t", { "http-req" }, function(txn)

    local ok, e = pcall(function() txn:set_var("bad") end)
    local ok2, e2 = pcall(function() txn.http:req_add_header({}, "b") end)
    txn:set_var("txn.r", tostring(e:match("'set_var' needs between 3 and 4 arguments")) .. type(e2) .. tostring(e2:match("string expected, got table")) .. tostring(e:match("%.lua:%d+:") ~= nil))
end)
