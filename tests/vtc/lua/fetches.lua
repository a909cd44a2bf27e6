core.register_action("t", { "http-req" }, function(txn)

    local f, sf = txn.f, txn.sf
    txn:set_var("txn.r", f:path() .. "|" .. f:req_hdr("a", 1) .. "|" .. tostring(f:req_hdr("zz")) .. "|" .. sf:req_hdr("zz")
      .. "|" .. math.type(f:src_port()) .. "|" .. type(sf:src_port()) .. "|" .. tostring(f:always_true()) .. "|" .. f:url_param("q"))
end)
