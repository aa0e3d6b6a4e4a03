//! The place at which a test hangs: asks a VM's runner for the stacks of all its threads.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The time that a VM has to write its stacks before we kill it without them.
const PATIENCE: Duration = Duration::from_secs(2);

/// Signals the process and reads what its runner wrote into `file`; `None` if it wrote nothing.
pub(crate) fn read_stack(pid: Pid, stack_signal: i32, file: &Path) -> Option<String> {
    let signal = Signal::try_from(stack_signal).ok()?;
    kill(pid, signal).ok()?;
    let until = Instant::now() + PATIENCE;
    let mut seen = String::new();
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(50));
        // The file is there as soon as the runner is; until it has text there is nothing to show.
        let text = fs::read_to_string(file).unwrap_or_default();
        if !text.is_empty() && text == seen {
            return Some(text);
        }
        seen = text;
    }
    (!seen.is_empty()).then_some(seen)
}
