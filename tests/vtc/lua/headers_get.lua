core.register_action("t", { "http-req" }, function(txn)

    local h = txn.http:req_get_headers()
    txn:set_var("txn.r", h["a"][0] .. h["a"][1] .. h["host"][0] .. tostring(h["A"]))
end)
