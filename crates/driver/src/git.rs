//! The user's repository: what the base is, and what differs from it.

pub mod base;
pub mod blob;
pub(crate) mod branch_base;
pub mod changes;
pub mod ci_push;
pub mod clutter;
pub mod difference;
pub(crate) mod generated;
pub(crate) mod patch;
pub(crate) mod paths;
pub(crate) mod pull_request;
pub mod repository;
pub(crate) mod revisions;
pub(crate) mod unfetched;
pub mod worktree;
