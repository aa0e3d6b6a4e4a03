//! What stands around every route: who asks, how much is taken, and answers in general.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod guard;
pub(crate) mod metrics;
pub(crate) mod problem;
pub(crate) mod query;
pub(crate) mod session;
pub mod tokens;
