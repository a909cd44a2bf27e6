for _, name in pairs({ "DENY", "STOP", "ERROR", "INVALID", "DONE", "CONTINUE" }) do
  core.register_action(name, { "http-req" }, function(txn) return act[name] end)
end
