core.register_action("ask", { "http-req" }, function(txn)
  local s = core.tcp()
  s:settimeout(2)
  local ok = s:connect("127.0.0.1", tonumber(txn.f:req_hdr("port")))
  s:send("GET /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
  local first = s:receive("*l")
  local name, n
  repeat
    local l = s:receive("*l")
    n = l
  until l == "" or l == nil
  local body = s:receive(3)
  local rest, err = s:receive("*l")
  s:close()
  local closed, why = s:receive("*l")
  txn:set_var("txn.r", tostring(ok) .. first .. body .. tostring(rest) .. tostring(err) .. tostring(closed))
end)
core.register_action("http", { "http-req" }, function(txn)
  local c = core.httpclient()
  local r = c:post({ url = "http://127.0.0.1:" .. txn.f:req_hdr("port") .. "/y", body = "1234", headers = { ["X-A"] = { "b" } } })
  txn:set_var("txn.r", r.status .. r.body .. r.headers["x-z"][0])
end)
