//! Ends every process that a run has started, also those that left their process group.
//!
//! Only for a run that is cut short: after a normal one, a daemon that a test started on purpose may
//! live on, as it would after plain pytest.

use std::thread;
use std::time::{Duration, Instant};

/// How long the processes may take to die.
const PATIENCE: Duration = Duration::from_secs(5);

/// Kills all descendants of this process and waits until none is alive.
pub(crate) fn kill_descendants() {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let alive = living_descendants();
        if alive.is_empty() {
            return;
        }
        for pid in alive {
            // It may have died by itself since we looked.
            let _gone_already = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The processes below this one that are not zombies. Orphans are ours too: the fleet adopts them.
#[cfg(target_os = "linux")]
fn living_descendants() -> Vec<nix::unistd::Pid> {
    use std::collections::HashMap;
    use std::fs;

    let mut children: HashMap<i32, Vec<(i32, bool)>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        // A process that ends while we look has no status to read.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The name in parentheses may hold anything, so the fields are read from behind it.
        let Some((head, tail)) = stat.rsplit_once(") ") else {
            continue;
        };
        let mut fields = tail.split(' ');
        let pid = head.split(' ').next().and_then(|pid| pid.parse().ok());
        let is_alive = fields
            .next()
            .is_some_and(|state| !matches!(state, "Z" | "X"));
        let parent = fields.next().and_then(|parent| parent.parse().ok());
        if let (Some(pid), Some(parent)) = (pid, parent) {
            children.entry(parent).or_default().push((pid, is_alive));
        }
    }
    let mut found = Vec::new();
    let mut queue = vec![nix::unistd::getpid().as_raw()];
    while let Some(parent) = queue.pop() {
        for (pid, is_alive) in children.remove(&parent).unwrap_or_default() {
            queue.push(pid);
            if is_alive {
                found.push(nix::unistd::Pid::from_raw(pid));
            }
        }
    }
    found
}

/// Without `/proc` the process groups, which the fleet ends, are all that we know of.
#[cfg(not(target_os = "linux"))]
fn living_descendants() -> Vec<nix::unistd::Pid> {
    Vec::new()
}
