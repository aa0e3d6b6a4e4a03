//! What people and programs see: progress, reports, errors, and commands that repeat a finding.

pub(crate) mod console;
pub(crate) mod explain;
pub(crate) mod printable;
pub(crate) mod repeat;
pub(crate) mod report;
pub(crate) mod stdout;
