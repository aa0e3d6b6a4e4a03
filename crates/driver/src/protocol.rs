//! What driver and runners say to each other, as `docs/protocol.md` describes it.

pub(crate) mod delays;
pub(crate) mod hello;
pub(crate) mod messages;
pub(crate) mod result;
pub mod state;
