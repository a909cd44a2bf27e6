core.use_native_mailers_config()
core.register_init(function()
    local m = core.backends.be:get_mailers()
    local servers = core.backends.be.servers
    local of = {}
    for _, s in pairs(servers.s1:get_trackers()) do of[#of + 1] = s:get_name() end
    told = table.concat({ m.smtp_from, m.smtp_to, m.smtp_hostname, m.log_level, tostring(m.track_server_health),
        m.mailservers_timeout, m.mailservers.one, m.mailservers.two, tostring((core.backends.none:get_mailers())),
        servers.s2:tracking():get_name(), tostring((servers.s1:tracking())), table.concat(of, "+") }, " ")
end)
core.register_fetches("told", function() return told end)
