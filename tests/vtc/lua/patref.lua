core.register_action("t", { "http-req" }, function(txn)
  local p = core.get_patref("virt@m")
  p:add("a", "1")
  p:set("a", "2")
  p:set("b", "3", true)
  local first = tostring(p["a"]) .. tostring(p["b"]) .. tostring(p["zz"]) .. tostring(p:is_map()) .. p:get_name()
  p:del("a")
  p:prepare()
  p:add("c", "9")
  p:commit()
  core.set_map("virt@m", "c", "5")
  local keys = {}
  for k, v in pairs(p) do keys[#keys + 1] = k .. v end
  core.del_map("virt@m", "c")
  p:purge()
  local n = 0
  for k, v in pairs(p) do n = n + 1 end
  txn:set_var("txn.r", first .. table.concat(keys, ",") .. n)
end)
