core.register_action("t", { "http-req" }, function(txn)

    txn:set_var("txn.r", core.http_date("Sun, 06 Nov 1994 08:49:37 GMT") .. "," .. core.imf_date("Sun, 06 Nov 1994 08:49:37 GMT")
      .. "," .. core.rfc850_date("Sunday, 06-Nov-94 08:49:37 GMT") .. "," .. core.asctime_date("Sun Nov  6 08:49:37 1994"))
end)
