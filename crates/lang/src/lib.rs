//! Floor 3: the rule language: samples, fetches, converters, conditions, actions, log-format.
#![forbid(unsafe_code)]
