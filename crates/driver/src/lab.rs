//! The place where experiments are made: a session's opening and closing, its lanes, and the runs that it waits for.

pub(crate) mod batches;
pub(crate) mod closing;
pub(crate) mod lane;
pub(crate) mod lane_lab;
pub(crate) mod lanes;
pub(crate) mod listings;
pub(crate) mod opening;
pub(crate) mod pending;
pub mod run_error;
pub mod session;
pub(crate) mod shared_prefix;
pub(crate) mod spare_vm;
pub mod start_error;
pub(crate) mod suspect;
pub(crate) mod warm_start;
