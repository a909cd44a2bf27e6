local function list(t)
    local all = {}
    for name, set in pairs(t) do if set then all[#all + 1] = name end end
    table.sort(all)
    return table.concat(all, "+")
end

core.event_sub({ "SERVER" }, function(event, data, sub, when)
    if event == "SERVER_CHECK" or data.name == "s9" then return end
    local text = event .. " " .. data.proxy_name .. "/" .. data.name .. " " .. data.puid
    if data.state then
        text = text .. " " .. data.state.old_state .. ">" .. data.state.new_state .. " " ..
            tostring(data.state.admin) .. " " .. data.state.cause
    end
    if data.admin then text = text .. " " .. list(data.admin.old_admin) .. ">" .. list(data.admin.new_admin) end
    text = text .. " " .. (data.reference and data.reference:get_name() or "gone")
    if when < 1000000000 then text = text .. " when?" end
    core.Info(text)
end)

core.register_init(function()
    core.backends.be.servers.s9:event_sub({ "SERVER_ADMIN" }, function(event, data, sub)
        core.Info("once " .. data.name)
        sub.unsub(sub)
    end)
end)

core.event_sub({ "SERVER_CHECK" }, function(event, data)
    if data.proxy_name == "checked" then
        local c = data.check
        core.Info(table.concat({ c.result, tostring(c.agent), c.reason.short, c.reason.code, c.health.rise, c.health.fall }, " "))
    end
end)

local ok, why = pcall(core.event_sub, {}, function() end)
core.register_fetches("why", function() return why end)
