//! The real binary on real projects with the real pytest.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod cases;
mod durable;
mod errors;
mod fixtures;
mod history;
mod hostile;
mod hunt;
mod interrupt;
mod intersect;
mod junit;
mod looks;
mod maven;
mod maven_changes;
mod nio;
mod order;
mod project;
mod reload;
mod reports;
mod search;
mod serve;
mod triage;
mod whose;
mod why;
