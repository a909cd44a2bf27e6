local mod = require("harriervtc")

local function answer(applet, text)
	applet:set_status(200)
	applet:add_header("Content-Length", #text)
	applet:start_response()
	applet:send(text)
end

core.register_service("sum", "http", function(applet)
	answer(applet, tostring(mod.sum(1, 2, 39)))
end)

core.register_service("error", "http", function(applet)
	local ok, text = pcall(mod.sum, 1, "x")
	answer(applet, tostring(ok) .. " " .. text)
end)

-- The function waits below the module, which goes on when it has ended.
core.register_service("wait", "http", function(applet)
	answer(applet, mod.call(function()
		core.msleep(20)
		return "waited"
	end))
end)

core.register_service("object", "http", function(applet)
	local one = mod.object("abc")
	local all = one:text() .. getmetatable(one).__name
	one = nil
	collectgarbage()
	answer(applet, all .. mod.collected())
end)

core.register_service("loadlib", "http", function(applet)
	local file = package.searchpath("harriervtc", package.cpath)
	local none, text, where = package.loadlib(file, "nonesuch")
	answer(applet, type(package.loadlib(file, "luaopen_harriervtc")) .. " " .. tostring(none) .. " " .. where)
end)

core.register_action("raise", { "http-req" }, function(txn)
	mod.sum({})
end)
