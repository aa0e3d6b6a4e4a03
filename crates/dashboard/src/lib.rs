//! unflake's server: the triage board over the history, and an API that takes reports from many CI jobs.
//!
//! One process, one store, no other service. What numbers mean is decided in `unflake-core`, and runs are
//! kept by `unflake-history`; here they are asked for over HTTP.

mod api;
mod app;
mod board;
mod http;
mod page;
mod routes;
mod server;
mod writer;

pub use app::{Limits, Options};
pub use http::tokens;
pub use server::{ServeError, serve};
