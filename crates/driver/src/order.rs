//! The search for tests that depend on their order, and for those that they depend on.

pub(crate) mod detect;
pub(crate) mod diagnose;
pub(crate) mod imports;
pub(crate) mod journal;
pub(crate) mod leftovers;
pub(crate) mod outcomes;
pub mod search;
pub(crate) mod show;
pub(crate) mod suspects;
