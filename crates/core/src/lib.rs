//! unflake's pure thought: the nouns, the techniques, and what they conclude.
//!
//! Nothing here has a clock, a file, a process, a thread or chance. A technique looks at the trials
//! so far and says which experiment to do next, or what it concludes; `unflake-driver` does it.

pub mod blame;
pub mod change;
pub mod chart;
pub mod cost;
pub mod drive;
pub mod edit;
pub mod event;
pub mod experiment;
pub mod failure;
pub mod fix;
pub mod intersect;
pub mod kind;
pub mod ladder;
pub mod latent;
pub mod nio;
pub mod order;
pub mod outcome;
pub mod owners;
#[cfg(test)]
mod paper_lab;
pub mod pattern;
pub mod plan;
pub mod policy;
pub mod quantify;
pub mod quarantine;
pub mod reported;
pub mod rules;
pub mod sequential;
pub mod state;
pub mod technique;
pub mod test;
pub mod threshold;
pub mod trial;
pub mod usage;
pub mod verdict;
pub mod why;
