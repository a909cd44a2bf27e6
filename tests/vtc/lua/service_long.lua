local piece = string.rep("0123456789abcdef", 12000)
core.register_service("long", "http", function(applet)
    applet:set_status(200)
    applet:add_header("Content-Length", #piece * 10)
    applet:start_response()
    for _ = 1, 10 do applet:send(piece) end
end)
core.register_service("bytes", "tcp", function(applet)
    repeat until applet:getline() == "\r\n"
    applet:send("HTTP/1.1 200 OK\r\nContent-Length: 1920000\r\n\r\n")
    for _ = 1, 10 do applet:send(piece) end
end)
