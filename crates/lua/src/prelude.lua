-- What scripts find: the classes of the API manual, made of functions that are bound to Lua (H).
--
-- A bound function gives true and its values, or false and a message; check() turns the latter into an
-- error where the script called. What waits yields TAG and what it waits for, and is resumed the same way.
local H, TAG = ...
local error, select, type, rawget, rawset = error, select, type, rawget, rawset
local setmetatable, getmetatable, pairs, tostring = setmetatable, getmetatable, pairs, tostring
local yield, unpack = coroutine.yield, table and table.unpack

-- What is said of a mistake may stand without a place in the script: then true follows it.
local function fail(level, text, bare)
    if bare then error(text, 0) end
    error(text, level)
end

local function check(ok, ...)
    if ok then return ... end
    fail(3, ...)
end

-- The same where its values are arguments of another call: the script's place is one further up.
local function need(ok, ...)
    if ok then return ... end
    fail(4, ...)
end

local function bound(name)
    local f = H[name]
    if f == nil then
        return function() error("'" .. name .. "' is not supported yet by Harrier", 2) end
    end
    return function(...) return check(f(...)) end
end

local function wait(...) return check(yield(TAG, ...)) end

-- What objects of a class are called where they are printed.
local called = { channel = "Channel", http = "HTTP", msg = "HTTPMessage", txn = "TXN", socket = "Socket", map = "Map",
    regex = "Regex", fetch = "Fetches", conv = "Converters", client = "HTTPClient", queue = "Queue",
    proxies = "ProxyList", servers = "ServerList", proxy = "Proxy", server = "Server", listener = "Listener", table = "StickTable",
    subscription = "EventSub", patref = "Patref", applet_http = "AppletHTTP", applet_tcp = "AppletTCP" }
local function shown(prefix, meta)
    local text = called[prefix] and "HAProxy class " .. called[prefix]
    if text then meta.__tostring = function() return text end end
    return meta
end

-- A class whose methods are bound under "prefix.name".
local function class(prefix, names)
    local methods = {}
    for _, name in pairs(names) do methods[name] = bound(prefix .. "." .. name) end
    return methods, shown(prefix, { __index = methods })
end

local function numbered(meta, handle, fields)
    local object = fields or {}
    object[0] = handle
    return setmetatable(object, meta)
end

-- Coroutines of scripts: what one of them waits for is handed to whoever resumed it, as if it had yielded.
local resume, create, wrapped = coroutine.resume, coroutine.create, coroutine.wrap
local function strip(ok, tag, ...)
    if ok and tag == TAG then return true end
    return ok, tag, ...
end
coroutine.resume = function(co, ...) return strip(resume(co, ...)) end
coroutine.wrap = function(f)
    local co = create(f)
    return function(...)
        local function pass(ok, ...)
            if ok then return ... end
            error((...), 0)
        end
        return pass(strip(resume(co, ...)))
    end
end

---------------------------------------------------------------------------------------------------- core
core = {
    silent = -1, emerg = 0, alert = 1, crit = 2, err = 3, warning = 4, notice = 5, info = 6, debug = 7,
    thread = H.thread,
}
for _, name in pairs { "log", "Debug", "Info", "Warning", "Alert", "get_info", "get_var", "now", "http_date", "imf_date", "rfc850_date",
    "asctime_date", "set_nice", "add_acl", "del_acl", "del_map", "set_map", "parse_addr", "match_addr",
    "tokenize", "use_native_mailers_config", "register_action", "register_converters",
    "register_fetches", "register_filter", "register_service", "register_init", "register_task",
    "register_cli" } do
    core[name] = bound("core." .. name)
end
local seconds, millis, forever = H["core.sleep"], H["core.msleep"], H["core.wait"]
function core.sleep(...) return wait("sleep", need(seconds(...))) end
function core.msleep(...) return wait("sleep", need(millis(...))) end
local yields = H["yields"]
-- Where nothing may wait it does nothing.
core.yield = function() if select(2, yields()) then return wait("yield") end end
core.wait = function(...) return wait("wake", need(forever(...))) end
core.done = function(data) yield(TAG, "done", data) end

-- Lists of objects by their names: "names" tells those there are, in order, and "known" whether one is. The
-- objects are made when they are first named. Nothing can be put there.
local function listing(kind, names, known, make)
    local made = {}
    local function at(name)
        if not known(name) then return nil end
        local object = made[name]
        if object == nil then
            object = make(name)
            made[name] = object
        end
        return object
    end
    return setmetatable({}, shown(kind, {
        __index = function(_, name) return type(name) == "string" and at(name) or nil end,
        __newindex = function() end,
        __pairs = function()
            local all, i = names(), 0
            return function()
                i = i + 1
                local name = all[i]
                return name, name and at(name)
            end
        end,
    }))
end
local metas = {}
local function object(kind, handle) return setmetatable({ [0] = handle }, metas[kind]) end
for _, name in pairs { "proxies", "backends", "frontends" } do
    local names, known = H["core." .. name], H["known." .. name]
    core[name] = listing("proxies", function() return check(names()) end,
        function(one) return check(known(one)) end, function(one) return object("proxy", one) end)
end

------------------------------------------------------------------------------------------ Concat, Queue
local concat, concat_meta = {}, {}
concat_meta.__index = concat
function core.concat() return setmetatable({ n = 0 }, concat_meta) end
local text = H["concat.add"]
function concat:add(s)
    local n = self.n + 1
    if type(s) ~= "string" then s = need(text(s)) end
    self.n, self[n] = n, s
end
local join = table and table.concat or H.join
function concat:dump()
    local all = join(self, "", 1, self.n)
    for i = 2, self.n do self[i] = nil end
    self[1], self.n = all, 1
    return all
end
concat_meta.__name = "Concat object"

local queue, queue_meta = {}, shown("queue", {})
queue_meta.__index = queue
function core.queue()
    return setmetatable({ first = 1, last = 0, waiting = {}, items = {} }, queue_meta)
end
function queue:size() return self.last - self.first + 1 end
local raise, waker = H.raise, H.waker
function queue:push(item, ...)
    if item == nil or select("#", ...) > 0 then error("unexpected argument", 2) end
    self.last = self.last + 1
    self.items[self.last] = item
    local waiting = self.waiting
    self.waiting = {}
    for _, w in pairs(waiting) do raise(w) end
    return true
end
function queue:pop()
    if self.first > self.last then return nil end
    local item = self.items[self.first]
    self.items[self.first] = nil
    self.first = self.first + 1
    return item
end
local function alarm(self, what)
    local w = check(waker())
    if w == nil then error(what .. "() may only be used within task context (requires yielding)", 3) end
    self.waiting[#self.waiting + 1] = w
end
function queue:alarm()
    alarm(self, "alarm")
    return true
end
function queue:pop_wait()
    while true do
        local item = self:pop()
        if item ~= nil then return item end
        alarm(self, "pop_wait")
        wait("wake")
    end
end

------------------------------------------------------------------------------------------ Regex and maps
local regex, regex_meta = class("regex", { "exec", "match" })
Regex = setmetatable(regex, { __tostring = regex_meta.__tostring })
function Regex.new(...)
    local ok, made, why = H["regex.new"](...)
    if not ok then error(made, 2) end
    if made == false then return false, why end
    return true, numbered(regex_meta, made)
end

local map, map_meta = class("map", { "lookup", "slookup" })
Map = setmetatable(map, { __tostring = map_meta.__tostring })
for number, name in pairs { [0] = "found", "bool", "int", "ip", "bin", "len", "str", "beg", "sub", "dir", "dom",
    "end", "reg", "regm" } do
    Map[name], Map["_" .. name] = number, number
end
function Map.new(...) return numbered(map_meta, (need(H["map.new"](...)))) end

local patref, patref_meta = class("patref", { "get_name", "is_map", "purge", "prepare", "commit", "giveup",
    "add", "add_bulk", "del", "set", "event_sub" })
patref_meta.__index = function(t, key)
    local method = patref[key]
    if method ~= nil then return method end
    return check(H["patref.look"](t, key))
end
patref_meta.__pairs = function(t)
    local all, i = check(H["patref.all"](t)), 0
    return function()
        i = i + 2
        return all[i - 1], all[i] or nil
    end
end
local patref_of = H["core.get_patref"]
function core.get_patref(...)
    return numbered(patref_meta, (need(patref_of(...))))
end

--------------------------------------------------------------------------------- Fetches and converters
-- Each is bound when it is first named: there are hundreds.
-- Services have consumed the request: with `service` a fetch that looks at a message's data is an error.
local function samples(kind, text, service)
    local call, known, bound = H[kind .. ".call"], H[kind .. ".known"], H[kind .. ".bound"]
    local function method(name)
        local real = service and need(H["fetch.of_data"](name))
        if real then
            return function()
                error("the sample-fetch '" .. real .. "' needs to access data from channel's buffer " ..
                    "which is not available in Lua services", 0)
            end
        end
        local one = bound and bound(name, text)
        -- Nearly all calls have one argument at most.
        if one then
            return function(self, a, b, ...)
                if self == nil then
                    error("bad argument #1 to '" .. name .. "' (table expected, got no value)", 2)
                end
                local ok, value
                if a == nil then
                    ok, value = one(self[0])
                elseif b == nil then
                    ok, value = one(self[0], a)
                else
                    ok, value = one(self[0], a, b, ...)
                end
                if ok then return value end
                error(value, 2)
            end
        end
        return function(self, ...)
            if type(self) ~= "table" then
                error("bad argument #1 to '" .. name .. "' (table expected, got " .. type(self) .. ")", 2)
            end
            return check(call(self[0], text, name, ...))
        end
    end
    local methods = setmetatable({}, { __index = function(methods, name)
        if type(name) == "string" and select(2, known(name)) then
            local made = method(name)
            methods[name] = made
            return made
        end
    end })
    local meta = shown(kind, { __index = methods })
    return function(id) return setmetatable({ [0] = id }, meta) end
end

-------------------------------------------------------------------------------------------------- Socket
local socket, socket_meta = class("socket", { "close", "getpeername", "getsockname", "settimeout",
    "setoption" })
for _, name in pairs { "connect", "connect_ssl", "receive", "send" } do
    local prepare = H["socket." .. name]
    socket[name] = function(...) return wait("socket", need(prepare(...))) end
end
function core.tcp() return numbered(socket_meta, (need(H["socket.new"]()))) end

local client, client_meta = {}, shown("client", {})
client_meta.__index = client
for _, method in pairs { "get", "head", "put", "post", "delete" } do
    client[method] = function(self, request)
        return wait("http", need(H["client.request"](method, self, request)))
    end
end
function core.httpclient() return setmetatable({}, client_meta) end

-------------------------------------------------------------------------------------------------- Channel
local channel, channel_meta = class("channel", { "input", "output", "may_recv", "is_full", "is_resp", "data",
    "line", "dup", "get", "getline", "append", "prepend", "insert", "remove", "set", "send", "forward",
    "get_in_len", "get_out_len" })

-- Those that may have to wait for more say so behind what they give.
for _, name in pairs { "data", "line", "getline", "forward" } do
    local f = H["channel." .. name]
    channel[name] = function(...)
        local found, more = need(f(...))
        while more do
            wait("data")
            found, more = need(f(...))
        end
        return found
    end
end

----------------------------------------------------------------------------------------------------- HTTP
local http, http_meta = class("http", { "req_get_headers", "res_get_headers", "req_add_header",
    "res_add_header", "req_del_header", "res_del_header", "req_set_header", "res_set_header",
    "req_rep_header", "res_rep_header", "req_rep_value", "res_rep_value", "req_set_method", "req_set_path",
    "req_set_query", "req_set_uri", "res_set_status" })

-- The fields of a head come as one string, and Lua takes it apart.
local headers, take_apart = H["hot.headers"], string and string.unpack
local formats = {}
for _, way in pairs { "req", "res" } do
    local plain, response = H["http." .. way .. "_get_headers"], way == "res"
    http[way .. "_get_headers"] = function(self, ...)
        local all, count
        if take_apart and ... == nil and type(self) == "table" then all, count = headers(self[0], response) end
        if all == nil or count > 100 then return check(plain(self, ...)) end
        local format = formats[count]
        if format == nil then
            format = "<" .. ("s4"):rep(2 * count)
            formats[count] = format
        end
        local list, made = { take_apart(format, all) }, {}
        for i = 1, 2 * count, 2 do
            local name, value = list[i], list[i + 1]
            local values = made[name]
            if values == nil then
                made[name] = { [0] = value }
            else
                values[#values + 1] = value
            end
        end
        return made
    end
end

---------------------------------------------------------------------------------------------- HTTPMessage
local message, message_meta = class("msg", { "input", "output", "may_recv", "is_full", "is_resp", "eom", "set_eom",
    "unset_eom", "body", "append", "prepend", "insert", "set", "remove", "send", "forward", "get_stline",
    "set_body_len" })
for _, name in pairs { "get_headers", "add_header", "del_header", "set_header", "rep_header", "rep_value" } do
    local request, response = H["http.req_" .. name], H["http.res_" .. name]
    message[name] = function(self, ...)
        return check((rawget(self, "res") and response or request)(self, ...))
    end
end
for _, name in pairs { "set_method", "set_path", "set_query", "set_uri" } do
    message[name] = bound("http.req_" .. name)
end
message.set_status = bound("http.res_set_status")

------------------------------------------------------------------------------------------- Reply and Txn
local reply, reply_meta = {}, {}
reply_meta.__index = reply
local reply_status, reply_field = H["reply.set_status"], H["reply.add_header"]
local reply_name, reply_body = H["reply.del_header"], H["reply.set_body"]
local function set_status(r, ...)
    local status, reason = need(reply_status(r, ...))
    if not status then return false end
    r.status, r.reason = status, reason
    return true
end
local function new_reply(from)
    local r = setmetatable({ status = 200, reason = "OK", headers = {} }, reply_meta)
    if type(from) ~= "table" then return r end
    if type(from.status) == "number" then set_status(r, from.status, from.reason) end
    if type(from.headers) == "table" then r.headers = from.headers end
    r.body = from.body
    return r
end
reply.set_status = set_status
function reply:add_header(...)
    local name, value = need(reply_field(self, ...))
    local values = self.headers[name]
    if values == nil then
        values = {}
        self.headers[name] = values
    end
    values[#values + 1] = value
    return true
end
function reply:del_header(...)
    self.headers[need(reply_name(self, ...))] = nil
    return true
end
function reply:set_body(...)
    self.body = need(reply_body(self, ...))
    return true
end

local txn, txn_meta = class("txn", { "log", "Debug", "Info", "Warning", "Alert", "deflog", "get_priv", "set_priv", "set_var", "unset_var",
    "get_var", "set_fc_tos", "set_fc_mark", "set_loglevel", "set_mark", "set_tos", "set_priority_class",
    "set_priority_offset" })
local set_var, set_any = H["hot.set_var"], H["txn.set_var"]
function txn.set_var(self, name, value, more, over)
    if value ~= nil and more == nil and self ~= nil then
        local done = set_var(self[0], name, value)
        if done ~= nil then return done end
    end
    if value == nil and more == nil then return check(set_any(self, name)) end
    if over ~= nil then return check(set_any(self, name, value, more, over)) end
    return check(set_any(self, name, value, more))
end
function txn:reply(from) return new_reply(from) end
function txn:done(r)
    need(H["txn.done"](self, r))
    yield(TAG, "done", 6)
end
local parts = {
    f = samples("fetch", false), sf = samples("fetch", true),
    c = samples("conv", false), sc = samples("conv", true),
    req = function(id) return numbered(channel_meta, id, { res = false }) end,
    res = function(id) return numbered(channel_meta, id, { res = true }) end,
}
local is_http = H["txn.is_http"]
local function http_of(id) return setmetatable({ [0] = id }, http_meta) end
txn_meta.__index = function(t, key)
    local method = txn[key]
    if method ~= nil then return method end
    local make = parts[key]
    if make == nil and key == "http" then
        local id = t[0]
        if id & 1 == 1 or select(2, is_http(t)) then make = http_of end
    end
    if make ~= nil then
        local part = make(t[0])
        t[key] = part
        return part
    end
end

-------------------------------------------------------------------------------------------------- applets
local applet_parts = {
    f = samples("fetch", false, true), sf = samples("fetch", true, true), c = parts.c, sc = parts.sc,
}
local function applet(prefix, own)
    local methods = class("applet", { "get_priv", "set_priv", "set_var", "unset_var", "get_var" })
    for name, method in pairs(own) do methods[name] = method end
    return shown("applet_" .. prefix, { __index = function(t, key)
        local method = methods[key]
        if method ~= nil then return method end
        local make = applet_parts[key]
        if make then
            local part = make(rawget(t, 0))
            rawset(t, key, part)
            return part
        end
    end })
end
local say = H["applet.send"]
local function send(...) return wait("applet", "send", need(say(...))) end
local tcp_meta = applet("tcp", {
    getline = function(self) return wait("applet", "line") end,
    receive = function(self, size, timeout) return wait("applet", "receive", size, timeout) end,
    try_receive = function(self) return wait("applet", "try") end,
    send = send,
})
local applet_size, applet_status, applet_header = H["applet.receive"], H["applet.set_status"], H["applet.add_header"]
local http_applet_meta = applet("http", {
    getline = function(self) return wait("applet", "line") end,
    receive = function(...) return wait("applet", "receive", need(applet_size(...))) end,
    send = function(self, ...)
        if not rawget(self, "started") then
            error("Lua: 'send' you must call start_response() before sending data.", 0)
        end
        return wait("applet", "send", need(say(self, ...)))
    end,
    set_status = function(self, ...)
        local status, reason = need(applet_status(self, ...))
        if not status then return false end
        self.status, self.reason = status, reason
        return true
    end,
    add_header = function(self, ...)
        local name, value = need(applet_header(self, ...))
        local n = #self.fields
        self.fields[n + 1], self.fields[n + 2] = name, value
        return true
    end,
    start_response = function(self)
        if rawget(self, "started") then return end
        rawset(self, "started", true)
        return wait("applet", "start", self.status, self.reason, self.fields)
    end,
})

---------------------------------------------------------------------------------------- proxies, servers
local named = {
    proxy = { "get_name", "get_uuid", "pause", "resume", "stop", "shut_bcksess", "get_cap", "get_mode",
        "get_srv_act", "get_srv_bck", "get_stats", "get_mailers" },
    server = { "get_name", "get_puid", "get_rid", "is_draining", "is_backup", "is_dynamic", "get_cur_sess",
        "get_pend_conn", "set_maxconn", "get_maxconn", "set_weight", "get_weight", "set_addr", "get_addr",
        "get_stats", "get_proxy", "shut_sess", "set_drain", "set_maint", "set_ready", "check_enable",
        "check_disable", "check_force_up", "check_force_nolb", "check_force_down", "agent_enable",
        "agent_disable", "agent_force_up", "agent_force_down", "tracking", "get_trackers", "event_sub" },
    listener = { "get_stats" },
    table = { "info", "lookup", "dump" },
    subscription = { "unsub" },
}
local fields = {
    proxy = { name = "get_name", uuid = "get_uuid", listeners = "listeners", stktable = "stktable" },
    server = { name = "get_name", puid = "get_puid" },
}
local server_names, server_known = H["proxy.servers"], H["proxy.has_server"]
local function servers_of(proxy)
    local list = listing("servers", function() return check(server_names(proxy)) end,
        function(one) return check(server_known(proxy, one)) end,
        function(one) return object("server", proxy[0] .. "/" .. one) end)
    rawset(proxy, "servers", list)
    return list
end
for kind, names in pairs(named) do
    local methods, meta = class(kind, names)
    local own = fields[kind]
    if own then
        meta.__index = function(t, key)
            local method = methods[key]
            if method ~= nil then return method end
            if own[key] then return check(H[kind .. "." .. own[key]](t)) end
            if key == "servers" and kind == "proxy" then return servers_of(t) end
        end
    end
    metas[kind] = meta
end
core.event_sub = bound("core.event_sub")

------------------------------------------------------------------------------------------------ constants
act = { CONTINUE = 0, STOP = 1, YIELD = 2, ERROR = 3, DONE = 4, DENY = 5, ABORT = 6, INVALID = 7 }
local wake_time = H["act.wake_time"]
function act:wake_time(ms) need(wake_time(type(self) == "table" and ms or self)) end
filter = { CONTINUE = 1, WAIT = 0, ERROR = -1, FLT_CFG_FL_HTX = 1,
    register_data_filter = bound("filter.register_data_filter"),
    unregister_data_filter = bound("filter.unregister_data_filter") }
function filter:wake_time(ms) need(wake_time(type(self) == "table" and ms or self)) end
CertCache = { set = bound("certcache.set") }
ACME = { challenge_ready = bound("acme.challenge_ready") }

if H.debug then
    debug = { traceback = function(msg, ...)
        if msg ~= nil and type(msg) ~= "string" and type(msg) ~= "number" then return msg end
        return (check(H.traceback(msg)))
    end, getinfo = function(level, what)
        if type(level) == "function" then return { func = level } end
        return check(H.inspect(level))
    end }
end
if os then os.getenv = bound("os.getenv") end
if os and not H.fork then
    local refused = function(name)
        return function() error(name .. ": programs may not be started (see 'insecure-fork-wanted')", 2) end
    end
    os.execute = refused("os.execute")
    if io then io.popen = refused("io.popen") end
end

-- Coroutines that are used again: each yields what a call returned and is resumed with the next one. A
-- function that came out of a call has no name in traces.
local OVER = TAG + 1
local calls = {}
local function unnamed(f) return f end
local function serve(n, id, ...)
    if id then return serve(yield(OVER, unnamed(calls[n])(setmetatable({ [0] = id, f = nil, sf = nil, http = nil }, txn_meta), ...))) end
    return serve(yield(OVER, unnamed(calls[n])(...)))
end

return {
    serve = serve,
    keep = function(f)
        calls[#calls + 1] = f
        return #calls
    end,
    channel = function(id, res) return numbered(channel_meta, id, { res = res }) end,
    msg = function(id, res)
        return numbered(message_meta, id, { res = res, channel = numbered(channel_meta, id, { res = res }) })
    end,
    txn = function(id) return setmetatable({ [0] = id }, txn_meta) end,
    tcp = function(id) return setmetatable({ [0] = id }, tcp_meta) end,
    http = function(id, made)
        made[0], made.status, made.fields, made.response = id, 200, {}, {}
        return setmetatable(made, http_applet_meta)
    end,
    object = object,
    reply = new_reply,
}
