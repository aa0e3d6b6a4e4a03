//! unflake's hands: starts VMs, speaks the runner protocol, and does the experiments that
//! `unflake-core` asks for. It decides nothing about a test, and prints nothing.

pub mod blame;
pub mod cause;
pub mod files;
pub mod framework;
pub mod git;
pub mod lab;
pub mod nio;
pub mod order;
pub mod protocol;
pub mod run;
pub mod usage;
pub mod vm;
pub mod why;
