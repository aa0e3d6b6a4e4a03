//! Why a test is flaky: runs with tracing, and what their traces say.

pub mod after_others;
pub mod delays;
pub mod gather;
pub mod inquiry;
pub mod trace;
