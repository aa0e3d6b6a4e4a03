//! The verbs, one file each.

pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod nio;
pub(crate) mod order;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod triage;
pub(crate) mod why;
