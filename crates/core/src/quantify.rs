//! How flaky is a test, how sure are we, has it changed, and what should be looked at first?
//!
//! Statistics of Rehman 2019 (Ch. 3 to 5) on counts of runs, with the paper's rules and better ones beside
//! them. Where the counts come from is the history's business.

pub mod anomaly;
pub mod binomial;
pub mod change_point;
pub mod cluster;
pub mod curve;
pub mod discovery;
pub mod evidence;
pub mod information;
pub mod interval;
pub mod needed;
pub mod normal;
pub mod period;
pub mod prior;
pub mod quantile;
pub mod rerun_order;
pub mod sample;
pub mod simulation;
pub mod unstable;
