-- A text of 13,893 bytes put together piece by piece, by far more instructions than tune.lua.forced-yield lets pass in one go.
core.register_service("pieces", "http", function(applet)
    local text = ""
    for i = 1, 3000 do
        text = text .. "" .. i .. ","
    end
    applet:set_status(200)
    applet:add_header("content-length", #text * 40)
    applet:start_response()
    for _ = 1, 40 do
        applet:send(text)
    end
end)
