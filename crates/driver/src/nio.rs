//! The search for tests that do not end the same when they are run twice.

pub(crate) mod confirm;
pub mod hunt;
pub(crate) mod latent;
pub(crate) mod pair;
pub(crate) mod screen;
