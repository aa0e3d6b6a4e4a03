//! unflake's memory: runs and labels in a store, and the import of what other tools wrote.
//!
//! What the numbers mean is decided in `unflake-core`; here they are kept, counted and read.

pub mod batch;
pub mod book;
pub mod daily;
pub mod dates;
pub mod engine;
pub mod import;
pub mod junit;
mod names;
pub mod past;
pub mod periods;
pub mod run;
mod sqlite;
pub mod store;
