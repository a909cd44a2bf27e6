core.register_cli({ "show", "mine" }, "Shows what is mine", function(applet, a, b, c)
  applet:send("got " .. tostring(a) .. " " .. tostring(b) .. " " .. tostring(c) .. "\n")
end)
