core.register_action("t", { "http-req" }, function(txn)

    txn:set_var("txn.r", tostring(txn.c:bool(3)) .. tostring(txn.f:always_true()))
end)
