core.register_action("t", { "http-req" }, function(txn)

    txn:set_var("txn.r", table.concat({ core.silent, core.emerg, core.alert, core.crit, core.err, core.warning, core.notice, core.info, core.debug, act.CONTINUE, act.STOP, act.YIELD, act.ERROR, act.DONE, act.DENY, act.ABORT, act.INVALID }, ","))
end)
