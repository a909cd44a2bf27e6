local dir = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local m = Map.new(dir .. "/geo.txt", Map._ip)
core.register_fetches("m", function(txn)
  return tostring(m:lookup("10.1.2.3")) .. tostring(m:lookup("11.0.0.1")) .. m:slookup("11.0.0.1") .. "." .. tostring(m:lookup("192.168.0.1"))
end)
