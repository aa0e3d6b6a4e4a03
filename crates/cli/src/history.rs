//! The history of this project: where it is, and what a session writes into it and asks of it.

pub(crate) mod memory;
pub(crate) mod own_files;
pub(crate) mod place;
pub(crate) mod recorder;
pub(crate) mod whence;
mod whole_pass;
