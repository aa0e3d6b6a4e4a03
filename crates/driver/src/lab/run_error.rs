//! Why a run has no result: our trouble, not the tests'.

use unflake_core::trial::VmId;

use crate::git::difference::DifferenceError;
use crate::lab::start_error::StartError;

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A VM could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The framework ended before it had listed its tests.
    #[error("{framework} ended ({how}) before it listed its tests")]
    EndedEarly {
        /// Which framework.
        framework: &'static str,
        /// How it ended.
        how: String,
        /// What it wrote.
        output: String,
    },
    /// The interpreter has no pytest.
    #[error("`{python}` has no pytest")]
    NoPytest {
        /// The interpreter.
        python: String,
        /// What Python said.
        detail: String,
    },
    /// The JVM has no JUnit.
    #[error("the class path of the tests has no JUnit")]
    NoJunit {
        /// What Java said.
        detail: String,
    },
    /// The interpreter's pytest is too old.
    #[error("`{python}` has pytest {version}, and unflake needs 6.2 or later")]
    OldPytest {
        /// The interpreter.
        python: String,
        /// The version.
        version: String,
    },
    /// The interpreter is too old.
    #[error("`{python}` is Python {major}.{minor}, and unflake needs 3.8 or later")]
    OldPython {
        /// The interpreter.
        python: String,
        /// Its version.
        major: u32,
        /// Its version.
        minor: u32,
    },
    /// There is nothing to run.
    #[error("{framework} found no tests in {root}")]
    NoTests {
        /// Which framework.
        framework: &'static str,
        /// Where it looked.
        root: String,
        /// How many its options left out.
        deselected: usize,
    },
    /// The user names a test that is not there.
    #[error("there is no test `{name}`")]
    NoSuchTest {
        /// The name.
        name: String,
    },
    /// The options want a debugger.
    #[error("pytest's options ask for a debugger (--pdb or --trace)")]
    Interactive,
    /// The options want no test to run.
    #[error(
        "pytest's options ask that no test runs (--collect-only, --setup-only or --setup-plan)"
    )]
    CollectOnly,
    /// The user wants to know about the latest changes, and they cannot be known.
    #[error(transparent)]
    Against(#[from] DifferenceError),
    /// The runner said something that is not in the protocol.
    #[error("the runner in {vm} broke the protocol: {line}")]
    Protocol {
        /// The VM.
        vm: VmId,
        /// What it said.
        line: String,
    },
    /// The user stopped before there was anything to tell.
    #[error("interrupted")]
    Interrupted,
}
