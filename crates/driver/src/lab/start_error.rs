//! Why a VM could not be started.

use std::io;

/// Our trouble with starting a VM: we could not even ask.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No scratch folder or pipe.
    #[error("cannot prepare a folder for the run's pipes")]
    Scratch(#[source] io::Error),
    /// No process.
    #[error("cannot start `{command}`")]
    Spawn {
        /// The command.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// Another version of unflake's runner answered.
    #[error("the runner speaks protocol {theirs} and this unflake speaks {ours}")]
    Protocol {
        /// Its version.
        theirs: u32,
        /// Our version.
        ours: u32,
    },
}
