-- Changes what clients say, and counts what servers say.
local Loud = { flags = filter.FLT_CFG_FL_HTX }
Loud.__index = Loud
function Loud:new() return setmetatable({ came = 0, word = self.word }, Loud) end
function Loud:start_analyze(txn, chn) filter.register_data_filter(self, chn) end
function Loud:tcp_payload(txn, chn)
    if chn:is_resp() then
        self.came = self.came + chn:input()
        txn:set_var("txn.came", self.came)
    elseif chn:input() > 0 then
        local line = chn:line()
        chn:set(self.word .. line:upper(), 0, #line)
    end
end
core.register_filter("loud", Loud, function(flt, args)
    flt.word = args[1]
    return flt
end)
