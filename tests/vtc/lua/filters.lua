-- A filter whose callbacks about responses are these.
local function made(name, headers, payload, ended)
    local class = { id = name, flags = filter.FLT_CFG_FL_HTX }
    class.__index = class
    function class:new() return setmetatable({ seen = 0 }, class) end
    function class:start_analyze(txn, chn)
        if chn:is_resp() then filter.register_data_filter(self, chn) end
    end
    function class:http_headers(txn, msg)
        if msg:is_resp() and headers then return headers(self, txn, msg) end
    end
    function class:http_payload(txn, msg)
        if msg:is_resp() and payload then return payload(self, txn, msg) end
    end
    function class:http_end(txn, msg)
        if msg:is_resp() and ended then ended(self, txn, msg) end
    end
    core.register_filter(name, class, function(flt, args) return flt end)
end

made("upper", nil, function(_, _, msg)
    local body = msg:body()
    if body then msg:set(body:upper()) end
end)

made("whole", function(_, _, msg) msg:set_body_len("chunked") end, function(_, _, msg)
    if not msg:eom() then return filter.WAIT end
    msg:prepend("<")
    msg:append(">")
end)

made("ten", function(_, _, msg) msg:set_body_len(10) end, function(_, _, msg)
    if msg:input() > 0 then msg:set("0123456789") end
end)

made("parts", function(_, _, msg)
    msg:set_body_len("chunked")
    msg:set_header("a", "b")
    msg:add_header("a", "c")
    msg:rep_header("a", "b", "bb")
    msg:set_status(201, "Cre")
end, function(_, txn, msg)
    if msg:input() == 0 then return end
    local said = { msg:insert("AB", 1), msg:insert("C", -1), msg:remove(0, 1), msg:remove(-1), msg:remove(1, 2),
        msg:append("end"), msg:prepend("beg"), msg:set("xx", 1, 2), msg:send("S"), msg:input(), msg:forward(3),
        msg:body(2), msg:body(-3, 2), msg:append(string.rep("y", 20000)) }
    txn:set_var("txn.said", table.concat(said, ","))
end)

made("little", nil, function(self, _, msg)
    msg:forward(2)
    return filter.WAIT
end)

made("counts", nil, function(self, _, msg) self.seen = self.seen + msg:input() end, function(self, txn)
    txn:set_var("txn.said", self.seen)
end)

made("refuses", function() return filter.ERROR end)

made("later", function(self)
    if self.seen == 0 then
        self.seen = 1
        filter.wake_time(20)
        return filter.WAIT
    end
end)

made("long", nil, function(_, _, msg) if msg:eom() then msg:append("more") end end)
