//! The things that a watched run used: by its own record, and by that of the system.

mod classes;
pub(crate) mod facts;
pub(crate) mod ignored;
pub(crate) mod kernel;
pub(crate) mod lookout;
pub(crate) mod programs;
mod reader;
