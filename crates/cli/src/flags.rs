//! What can be typed, as it was typed.

pub(crate) mod args;
pub(crate) mod experiment;
pub(crate) mod history;
pub(crate) mod serve;
pub(crate) mod why;
