//! The suite's own run, and the reruns of what failed in it.

pub(crate) mod climb;
pub(crate) mod suite;
pub mod survey;
pub mod triage;
