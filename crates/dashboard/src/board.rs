//! The board's data, finished: pages and the API show the same.

pub(crate) mod aliases;
pub(crate) mod builds;
pub(crate) mod labels;
pub(crate) mod next;
pub(crate) mod one_test;
pub(crate) mod quarantine;
pub(crate) mod score;
pub(crate) mod snapshot;
pub(crate) mod stable;
pub(crate) mod suite;
pub(crate) mod suspicion;
pub(crate) mod tests_list;
pub(crate) mod triage;
