//! unflake's hands: starts VMs, speaks the runner protocol, and does the experiments that
//! `unflake-core` asks for. It decides nothing about a test, and prints nothing.

pub mod climb;
pub mod fleet;
pub mod hub;
pub mod interpreter;
pub mod output;
pub mod protocol;
pub mod pytest;
pub mod session;
pub mod stack;
pub mod suite;
pub mod vm;
