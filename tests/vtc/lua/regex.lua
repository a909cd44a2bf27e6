core.register_action("t", { "http-req" }, function(txn)

    local ok, r = Regex.new("needle (..) (...)", true)
    local st, list = r:match("Looking for a needle in the haystack")
    local bad, why = Regex.new("(", true)
    txn:set_var("txn.r", tostring(ok) .. tostring(r:exec("cat")) .. tostring(st) .. list[1] .. "," .. list[2] .. "," .. list[3] .. tostring(bad) .. type(why))
end)
