-- One name, two actions: how it is registered tells which is meant.
core.register_action("both", { "http-req" }, function(txn, word) txn.http:req_set_header("x-said", word) end, 1)
core.register_action("both", { "http-res" }, function(txn) txn.http:res_set_header("x-said", "response") end, 0)
