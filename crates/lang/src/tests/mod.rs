//! What users of the rule language notice: values, verdicts, messages.

mod actions;
mod conditions;
mod converters;
mod fetches;
mod formats;
mod stick;
mod tables;
