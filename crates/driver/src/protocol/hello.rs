//! The message with which a runner introduces itself, as `docs/protocol.md` describes it.

use serde::Deserialize;

/// Who a runner is.
#[derive(Debug, Deserialize)]
pub struct Hello {
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// The VM that speaks.
    pub vm: u32,
    /// Its process.
    pub pid: i32,
    /// The framework.
    pub framework: String,
    /// The framework's version.
    pub framework_version: String,
    /// The language.
    pub language: String,
    /// The language's version.
    pub language_version: String,
    /// The signal that makes it write all stacks into `<vm>.stack` beside the channel.
    pub stack_signal: i32,
}

impl Hello {
    /// The framework with its version: "pytest 8.3.2".
    pub fn framework(&self) -> String {
        format!("{} {}", self.framework, self.framework_version)
    }

    /// The language with its version: "Python 3.11.7".
    pub fn language(&self) -> String {
        format!("{} {}", self.language, self.language_version)
    }
}

/// Why a runner cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inability {
    /// The framework is not installed.
    NoFramework,
    /// The framework is older than the runner supports.
    OldFramework,
}
