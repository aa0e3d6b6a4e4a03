//! The search for tests that do not end the same when they are run twice.

pub mod hunt;
