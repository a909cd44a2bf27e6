core.register_action("t", { "http-req" }, function(txn)
  local t = core.proxies["st"].stktable
  local r = {}
  local function show(x) local k = {} for n, v in pairs(x) do k[#k+1] = n .. "=" .. (type(v) == "table" and "{}" or tostring(v)) end table.sort(k) return table.concat(k, " ") end
  local i = t:info()
  local l = t:lookup("127.0.0.1")
  local d = t:dump()
  local n = 0 local one
  for k, v in pairs(d) do n = n + 1 one = k .. ":" .. show(v) end
  local f = t:dump({ { "gpc0", "gt", 5 } })
  txn:set_var("txn.r", show(i) .. " / " .. show(i.data) .. " / " .. show(l) .. " / " .. n .. tostring(one) .. " / " .. tostring(next(f)) .. tostring(t:lookup("1.2.3.4")))
end)
