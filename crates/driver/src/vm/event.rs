//! The events that can happen to the VMs of a run.

use nix::unistd::Pid;
use unflake_core::state::Piece;
use unflake_core::trial::VmId;

use crate::protocol::hello::Inability;
use crate::protocol::messages::{Collected, Parsed};
use crate::protocol::result::{Ran, StopKind};
use crate::protocol::state::WirePlace;
use crate::vm::output::Output;

/// Something that happened to the fleet.
pub enum Happening {
    /// A VM's framework has read its configuration and waits for `Fleet::collect`.
    Parsed(VmId, Parsed),
    /// A VM has collected and waits for tests.
    Ready(VmId, Box<Collected>),
    /// A VM has been copied; the copy will say hello by itself.
    Forked(VmId),
    /// A forked VM has said hello and waits for tests.
    Cloned(VmId),
    /// A VM cannot be forked: the number that the copy would have had, or its own if it was to have none.
    Unforked(VmId, String),
    /// A VM has run a test.
    Ran(VmId, Box<Ran>),
    /// A VM does not know the test that it was told to run.
    Unknown(VmId),
    /// A copy is going to make a copy of itself, as soon as it gets the command for that.
    Branching(VmId),
    /// A copy of a VM does what the VM was told; this is its process.
    Apart(VmId, Pid),
    /// That copy has ended, and how if not as it should.
    Rejoined(VmId, Option<String>),
    /// A VM remembers its state; what it could not look into.
    Marked(VmId, Vec<String>),
    /// The differences in a VM from what it remembers, and the state that it could not examine.
    Changed(VmId, Vec<Piece>, Vec<String>),
    /// The places at which pieces of state were written.
    Located(VmId, Vec<WirePlace>, Option<String>),
    /// A test ended its VM's session; the VM ends by itself soon.
    Stopped(VmId, StopKind, String),
    /// A VM's framework has ended its session; the process ends now.
    Finished(VmId, i32, u32),
    /// A VM cannot work.
    Unable(VmId, Inability, String),
    /// A VM broke the protocol, and was killed.
    Garbled(VmId, String),
    /// A VM has ended.
    Ended(VmId, Fate),
    /// The time given to `Fleet::next` has come.
    Deadline,
    /// The user wants to stop.
    Interrupted,
}

/// The end of a VM.
pub struct Fate {
    /// In words: "exit status 1", "killed by signal 11 (SIGSEGV)".
    pub how: String,
    /// Its output.
    pub output: Output,
}
