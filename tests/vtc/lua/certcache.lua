-- Certificates are put in the place of those that are served; what is wrong changes nothing.
local function read(name)
    local file = io.open(os.getenv("CERTS") .. "/" .. name)
    local text = file:read("a")
    file:close()
    return text
end
local live = os.getenv("CERTS") .. "/live.pem"
core.register_fetches("no", function() return select(2, pcall(CertCache.set, { filename = live })) end)
core.register_action("put", { "http-req" }, function(txn)
    local told = {}
    local function try(fields)
        local ok, why = pcall(CertCache.set, fields)
        told[#told + 1] = tostring(why):gsub("[\r\n]+", " ")
    end
    try{ crt = "x" }
    try{ filename = "/none", crt = "x" }
    try{ filename = live, none = "x" }
    try{ filename = live, key = "x" }
    try{ filename = live, crt = read("b.crt"), key = read("b.key") }
    txn:set_var("txn.told", table.concat(told, ", "))
end)
