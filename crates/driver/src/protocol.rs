//! The messages between driver and runners, as `docs/protocol.md` describes them.

pub(crate) mod delays;
pub(crate) mod hello;
pub(crate) mod messages;
pub(crate) mod result;
pub mod state;
