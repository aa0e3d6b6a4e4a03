//! unflake's server: the triage board over the history, and an API that takes reports from many CI jobs.
//!
//! One process, one store, no other service. What numbers mean is decided in `unflake-core`, and runs are
//! kept by `unflake-history`; here they are asked for over HTTP.

mod aliases;
mod answer;
mod api;
mod app;
mod badge;
mod builds;
mod export;
mod guard;
mod health;
mod labels;
mod live;
mod metrics;
mod next;
mod one_test;
mod openapi;
mod page;
mod plots;
mod problem;
mod quarantine;
mod query;
mod reports;
mod routes;
mod score;
mod server;
mod session;
mod snapshot;
mod stable;
mod suite;
mod suspicion;
mod tests_list;
pub mod tokens;
mod triage;
mod words;
mod writer;

pub use app::{Limits, Options};
pub use server::{ServeError, serve};
