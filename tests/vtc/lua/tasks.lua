local q, seen = core.queue(), 0
local inits = 0
core.register_init(function() inits = inits + 1 end)
core.register_task(function(a, b)
  while true do
    local item = q:pop_wait()
    seen = seen + item + a + b
  end
end, 100, 1000)
core.register_action("push", { "http-req" }, function(txn)
  q:push(1)
  q:push(2)
  core.register_task(function() q:push(10) end)
  core.msleep(50)
  txn:set_var("txn.r", inits .. "," .. seen)
end)
