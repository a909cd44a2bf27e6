-- What a content rule makes of the data is what the server gets, and a look waits for as much as it asks for.
core.register_action("edit", { "tcp-req" }, function(txn)
    local c = txn.req
    local line = c:getline()
    local eight = c:data(0, 8)
    c:remove(0, 4)
    local told = { line:len(), eight, c:input(), c:output(), tostring(c:is_resp()) }
    told[#told + 1] = c:insert("INS", 2)
    told[#told + 1] = c:set("S", 0, 2)
    told[#told + 1] = c:prepend("pre-")
    told[#told + 1] = c:send("sent ")
    told[#told + 1] = c:forward(6)
    told[#told + 1] = c:output() .. "/" .. c:input()
    local ok, why = pcall(c.remove, c, 100)
    told[#told + 1] = why
    txn:set_var("sess.told", table.concat(told, " "))
end)
core.register_action("answer", { "tcp-res" }, function(txn)
    txn.res:prepend("[")
end)
