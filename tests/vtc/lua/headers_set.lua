core.register_action("t", { "http-req" }, function(txn)

    local h = txn.http
    h:req_add_header("B", "x")
    h:req_add_header("B", "y")
    h:req_set_header("C", "z")
    h:req_del_header("A")
    h:req_rep_header("Host", "w(w)w", "[\\1]")
    h:req_set_header("B2", "1")
    local f = txn.f
    txn:set_var("txn.r", f:req_hdr_cnt("b") .. f:req_hdr("c") .. f:req_hdr_cnt("a") .. f:req_hdr("host"))
end)
