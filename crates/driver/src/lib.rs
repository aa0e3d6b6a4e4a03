//! unflake's hands: starts VMs, speaks the runner protocol, and does the experiments that
//! `unflake-core` asks for. It decides nothing about a test, and prints nothing.

mod asked;
pub mod base;
pub mod blob;
pub mod changes;
mod climb;
mod descendants;
pub mod fleet;
pub mod git;
mod hub;
pub mod interpreter;
mod opening;
mod output;
mod patch;
mod protocol;
mod pull_request;
pub mod pytest;
pub mod run_error;
pub mod session;
mod stack;
mod suite;
mod vm;
pub mod worktree;
