local busy = false

local function spin()
    local x = 0
    for i = 1, 4000000 do x = x + i end
    return x
end

core.register_action("spin", { "http-req" }, function(txn)
    busy = true
    local sum = 0
    -- In calls, in a protected one, and in a metamethod.
    local odd = setmetatable({}, { __index = function() return spin() end })
    for _ = 1, 3 do
        local ok, one = pcall(spin)
        sum = sum + (ok and one or 0) + odd.one
    end
    -- A coroutine of the script's own yields what it says, to whom it says it.
    local own = coroutine.wrap(function() for i = 1, 3 do spin() coroutine.yield(i) end end)
    sum = sum + own() + own() + own()
    -- Called back by a function of C, it is not interrupted, and goes on.
    sum = sum + (select(2, string.gsub("ab", ".", function() spin() end)))
    busy = false
    txn:set_var("txn.sum", string.format("%d", sum))
end)

core.register_action("look", { "http-req" }, function(txn)
    txn:set_var("txn.busy", busy and "yes" or "no")
end)
