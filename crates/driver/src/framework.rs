//! The test frameworks: how their projects are found and asked, and how their processes are started.

pub mod maven;
pub mod project;
pub mod pytest;
