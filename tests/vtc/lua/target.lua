core.register_action("t", { "http-req" }, function(txn)

    local h, f = txn.http, txn.f
    h:req_set_method("PUT")
    h:req_set_path("/new")
    h:req_set_query("z=9")
    local first = f:path() .. f:query()
    h:req_set_uri("/all?u")
    txn:set_var("txn.r", first .. f:pathq())
end)
