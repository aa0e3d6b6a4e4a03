//! Why a test is flaky: what its failing runs do otherwise than its passing runs (`RootFinder` 2019).
//!
//! Traces of runs go into a [`ledger::Ledger`]; it says which predicates about calls tell the failing
//! runs from the passing ones, in the order of the paper or in ours. How traces are made, and how many
//! runs it takes to get them, is the driver's.

mod categorize;
pub mod category;
pub mod difference;
mod elements;
pub mod enough;
pub mod extremes;
mod folding;
pub mod fuzz;
pub mod ledger;
mod pairs;
pub mod paper;
pub mod predicate;
pub mod ranking;
mod split;
pub mod trace;

#[cfg(test)]
mod tests;
