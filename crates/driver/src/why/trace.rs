//! Traces: files as `docs/trace-format.md` has them, and logs of other tools.

pub(crate) mod csv;
pub(crate) mod events;
pub(crate) mod fields;
pub mod file;
pub(crate) mod records;
