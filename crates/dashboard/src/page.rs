//! Pages: HTML that works without a script, by keyboard, and when it is read aloud.

pub(crate) mod assets;
pub(crate) mod forms;
pub(crate) mod frame;
pub(crate) mod login;
pub(crate) mod next;
pub(crate) mod parts;
pub(crate) mod plots;
pub(crate) mod quarantine;
pub(crate) mod suite;
pub(crate) mod test;
pub(crate) mod tests;
pub(crate) mod triage;
pub(crate) mod trouble;
pub(crate) mod words;
