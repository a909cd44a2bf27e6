core.register_service("loop", "http", function(applet) while true do end end)
core.register_fetches("loop", function(txn) while true do end end)
core.register_task(function() while true do end end)
