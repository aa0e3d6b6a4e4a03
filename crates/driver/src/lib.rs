//! unflake's hands: starts VMs, speaks the runner protocol, and does the experiments that
//! `unflake-core` asks for. It decides nothing about a test, and prints nothing.

mod asked;
pub mod base;
pub mod blob;
mod blocks;
pub mod changes;
mod climb;
mod comparing;
mod descendants;
pub mod difference;
mod ending;
mod facts;
pub mod fleet;
pub mod git;
mod hub;
pub mod interpreter;
mod opening;
mod output;
mod patch;
mod program;
mod protocol;
mod pull_request;
pub mod pytest;
pub mod run_error;
pub mod session;
mod stack;
pub mod start_error;
mod suite;
pub mod survey;
pub mod triage;
mod vm;
mod watch;
pub mod worktree;
