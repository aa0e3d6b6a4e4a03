//! Ends every process that the VMs of a run have started, also those that left their process group.
//!
//! Only for a run that is cut short: after a normal one, a daemon that a test started on purpose may
//! live on, as it would after plain pytest.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The time that the processes may take to die.
const PATIENCE: Duration = Duration::from_secs(5);

/// Kills these processes and all their descendants, and waits until none of them is alive.
///
/// A daemon whose parent had ended before is not found: it is nobody's descendant any more.
pub(crate) fn kill_descendants(roots: Vec<Pid>) {
    let until = Instant::now() + PATIENCE;
    let mut doomed = roots;
    while Instant::now() < until {
        // A process that was found once is remembered: when its parent dies, it is no descendant any more.
        doomed = living(&doomed);
        if doomed.is_empty() {
            return;
        }
        for pid in &doomed {
            // It may have died by itself since we looked.
            let _gone_already = kill(*pid, Signal::SIGKILL);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The processes among these and their descendants that are neither dead nor zombies.
#[cfg(target_os = "linux")]
fn living(roots: &[Pid]) -> Vec<Pid> {
    use std::collections::{HashMap, HashSet};
    use std::fs;

    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let mut alive: HashSet<i32> = HashSet::new();
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
        let state = fields.next().unwrap_or("X");
        let parent = fields.next().and_then(|parent| parent.parse().ok());
        if let (Some(pid), Some(parent)) = (pid, parent) {
            children.entry(parent).or_default().push(pid);
            if !matches!(state, "Z" | "X") {
                alive.insert(pid);
            }
        }
    }
    let mut found = Vec::new();
    let mut queue: Vec<i32> = roots.iter().map(|pid| pid.as_raw()).collect();
    while let Some(pid) = queue.pop() {
        queue.extend(children.remove(&pid).unwrap_or_default());
        if alive.remove(&pid) {
            found.push(Pid::from_raw(pid));
        }
    }
    found
}

/// Without `/proc` the VMs themselves are all that we know of; a signal of 0 asks for life.
#[cfg(not(target_os = "linux"))]
fn living(roots: &[Pid]) -> Vec<Pid> {
    let is_alive = |pid: &&Pid| kill(**pid, None).is_ok();
    roots.iter().filter(is_alive).copied().collect()
}
