-- Calls what scripts find, on what it is meant for or on something else, as the bytes say.
local error, pcall, getmetatable, setmetatable, type, next = error, pcall, getmetatable, setmetatable, type, next
local pack, unpack, sort, rep = table.pack, table.unpack, table.sort, string.rep

return function(txn, bytes)
    local at = 0
    local function byte()
        at = at + 1
        return bytes:byte(at) or 0
    end
    local circle = {}
    circle[1], circle.headers = circle, circle
    local cruel = setmetatable({}, {
        __index = function() error("no") end, __newindex = function() error("no") end,
        __len = function() return 1 << 40 end, __tostring = function() return {} end,
        __pairs = function() return function() return 1, 1 end end, __name = "cruel", __gc = true,
    })
    local values = {
        false, true, 0, 1, -1, 2, math.maxinteger, math.mininteger, 2 ^ 53, 1e308, -0.5, 0 / 0, 1 / 0, "", "0", "-1",
        "\0\r\n\255", "a\r\nb: c", bytes, rep("x", 70000), "txn.x", "127.0.0.1:80", "::1", "/", "GET", "host", "x-a", "[", "(",
        {}, { 1, 2, 3 }, { [0] = 1 }, { [0] = -1 }, { [0] = "x" }, { a = "b" }, { ["x-a"] = { "b", [0] = 1 } },
        { url = "http://127.0.0.1:0/" }, circle, cruel, function() return 1 end, function() error(circle) end,
        coroutine.create(function() end), txn,
    }
    local targets, seen = {}, {}
    -- Notes the functions of a table and of its class, in an order that is always the same.
    local function walk(table, own, depth)
        if seen[table] or depth > 5 or #targets > 2000 then return end
        seen[table] = true
        local names = {}
        for name in next, table do if type(name) == "string" then names[#names + 1] = name end end
        sort(names)
        for _, name in next, names do
            local value = rawget(table, name)
            if type(value) == "function" then
                targets[#targets + 1] = { value, own }
            elseif type(value) == "table" then
                walk(value, value, depth + 1)
            end
        end
        local meta = getmetatable(table)
        if type(meta) ~= "table" then return end
        local index = rawget(meta, "__index")
        if type(index) == "table" then
            seen[index] = nil
            walk(index, own, depth + 1)
        end
        for _, name in next, { "__index", "__newindex", "__len", "__pairs", "__tostring", "__call", "__gc", "__concat" } do
            local value = rawget(meta, name)
            if type(value) == "function" then targets[#targets + 1] = { value, own } end
        end
    end
    for _, name in next, { "core", "act", "filter", "Map", "Regex", "Concat", "Proxy", "CertCache", "mailers" } do
        local class = rawget(_G, name)
        if type(class) == "table" then walk(class, class, 0) end
    end
    walk(txn, txn, 0)
    for _, name in next, { "f", "sf", "c", "sc", "req", "res", "http", "http_req", "http_res" } do
        local ok, part = pcall(function() return txn[name] end)
        if ok and type(part) == "table" then
            values[#values + 1] = part
            walk(part, part, 0)
        end
    end
    for _ = 1, 48 do
        if at >= #bytes then return end
        local target = targets[(byte() * 256 + byte()) % #targets + 1]
        local shape = byte()
        local args, count = {}, shape % 7
        for i = 1, count do args[i] = values[byte() % (#values + 1) + 1] end
        -- Mostly methods are called on what they are of.
        if shape < 200 and count > 0 then args[1] = target[2] end
        local got = pack(pcall(target[1], unpack(args, 1, count)))
        for i = 2, got.n do
            local one = got[i]
            if one ~= nil and #values < 250 then
                values[#values + 1] = one
                if type(one) == "table" then walk(one, one, 1) end
            end
        end
    end
end
