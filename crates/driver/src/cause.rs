//! The state behind an order dependence, and changes that were seen to help.

pub(crate) mod find;
pub(crate) mod fixes;
pub(crate) mod scene;
