//! unflake's hands: starts VMs, speaks the runner protocol, and does the experiments that
//! `unflake-core` asks for. It decides nothing about a test, and prints nothing.

mod asked;
mod climb;
mod descendants;
pub mod fleet;
mod hub;
pub mod interpreter;
mod opening;
mod output;
mod protocol;
pub mod pytest;
pub mod run_error;
pub mod session;
mod stack;
mod suite;
mod vm;
