//! The processes in which tests run: their birth, their pipes, what they write, and their end.

pub(crate) mod descendants;
pub(crate) mod errand;
pub mod event;
pub mod fleet;
pub mod interrupter;
pub(crate) mod output;
pub(crate) mod pipes;
pub(crate) mod process;
pub(crate) mod stacks;
