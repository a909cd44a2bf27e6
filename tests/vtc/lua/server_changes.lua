core.register_action("t", { "http-req" }, function(txn)

    local s = core.backends["be"].servers["s1"]
    s:set_weight("7")
    local w = s:get_weight()
    s:set_maint()
    local maint = s:get_stats()["status"]
    s:set_ready()
    txn:set_var("txn.r", w .. maint .. (s:get_stats()["status"]))
end)
