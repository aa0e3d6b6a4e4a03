//! Copies of a project's files, and what has changed in them.

pub(crate) mod copy;
pub(crate) mod fingerprint;
pub(crate) mod home;
pub(crate) mod names;
pub(crate) mod quiet;
pub(crate) mod siblings;
pub mod snapshot;
pub mod workspace;
