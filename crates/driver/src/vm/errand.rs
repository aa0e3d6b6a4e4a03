//! A command beside the VMs that prepares something for them: it ends in the time, or with the run.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use unflake_core::trial::VmId;

use crate::vm::descendants::kill_descendants;
use crate::vm::interrupter::Interrupter;
use crate::vm::output::Output;
use crate::vm::pipes::Incoming;

/// The time that the last words of a command may take to arrive: a process that it left running may hold its output
/// open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The limit that ends a command which does not end by itself.
#[derive(Clone)]
pub(crate) struct Limit {
    /// The user.
    pub(crate) interrupter: Interrupter,
    /// The time, if there is a limit.
    pub(crate) deadline: Option<Instant>,
}

/// The end of a command.
#[derive(Debug)]
pub(crate) enum Errand {
    /// By itself.
    Ended {
        /// How.
        status: ExitStatus,
        /// The last part of what it wrote.
        output: String,
    },
    /// It was ended: the time was over.
    TooLate {
        /// The time that it had.
        after: Duration,
    },
    /// It was ended with the run.
    Interrupted,
}

impl Limit {
    /// This limit with a part of the time that is left.
    pub(crate) fn part(&self, divisor: u32) -> Self {
        let now = Instant::now();
        let left = |deadline: Instant| deadline.saturating_duration_since(now);
        Self {
            deadline: self.deadline.map(|end| now + left(end) / divisor),
            ..self.clone()
        }
    }

    /// Runs a command until its end. What it leaves running, a service for example, lives on; a command that is cut
    /// short leaves nothing.
    pub(crate) fn run(&self, command: &mut Command) -> io::Result<Errand> {
        let since = Instant::now();
        let (reader, writer) = io::pipe()?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .spawn()?;
        // The command holds our copies of the pipe's writing end.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
        let output = Output::drain(reader);
        let (sender, queue) = channel();
        self.interrupter.tell(sender.clone());
        let waiter = thread::spawn(move || {
            // Without a reader nobody wants to know.
            drop(sender.send(Incoming::Exited(VmId(0), child.wait())));
        });
        let heard = match self.deadline {
            None => queue.recv().ok(),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                queue.recv_timeout(left).ok()
            }
        };
        let ended = match heard {
            Some(Incoming::Exited(_, status)) => Errand::Ended {
                status: status?,
                output: output.text(LAST_WORDS),
            },
            Some(
                Incoming::Interrupted
                | Incoming::Connected(..)
                | Incoming::Said(..)
                | Incoming::Garbled(..)
                | Incoming::Closed(_),
            ) => {
                end(pid);
                Errand::Interrupted
            }
            None => {
                end(pid);
                Errand::TooLate {
                    after: since.elapsed(),
                }
            }
        };
        // It has nothing left to wait for.
        drop(waiter.join());
        Ok(ended)
    }
}

/// Ends a command, its process group, and what has left that.
fn end(pid: Pid) {
    kill_descendants(vec![pid]);
    // Its group is gone already, or only zombies are left in it.
    let _gone_already = killpg(pid, Signal::SIGKILL);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn shell(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    fn limit(deadline: Option<Instant>) -> Limit {
        Limit {
            interrupter: Interrupter::default(),
            deadline,
        }
    }

    /// A command that hangs, and says before which process hangs.
    fn hang(folder: &tempfile::TempDir) -> (Command, std::path::PathBuf) {
        let file = folder.path().join("pid");
        let text = format!(
            "sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait",
            file.display()
        );
        (shell(&text), file)
    }

    fn is_alive(pid: &str) -> bool {
        let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        !(state.is_empty() || state.contains(") Z ") || state.contains(") X "))
    }

    #[test]
    fn a_command_tells_how_it_ended_and_its_last_words() {
        let ended = limit(None).run(&mut shell("echo one; echo two >&2; exit 3"));
        let Errand::Ended { status, output } = ended.unwrap() else {
            panic!("it ended by itself");
        };
        assert_eq!((status.code(), output.as_str()), (Some(3), "one\ntwo\n"));
    }

    #[test]
    fn when_the_time_is_over_it_ends_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let (mut command, file) = hang(&folder);
        let deadline = Instant::now() + Duration::from_millis(300);
        let ended = limit(Some(deadline)).run(&mut command).unwrap();
        assert!(matches!(ended, Errand::TooLate { .. }), "{ended:?}");
        // On a machine that is very busy it had not begun.
        let pid = fs::read_to_string(file);
        assert!(!pid.is_ok_and(|pid| is_alive(&pid)));
    }

    #[test]
    fn an_interruption_ends_it_also_one_that_came_before() {
        let folder = tempfile::tempdir().unwrap();
        let (mut command, file) = hang(&folder);
        let limit = limit(None);
        let interrupter = limit.interrupter.clone();
        let pid = thread::spawn(move || {
            loop {
                if let Ok(pid) = fs::read_to_string(&file) {
                    interrupter.interrupt();
                    return pid;
                }
                thread::yield_now();
            }
        });
        let ended = limit.run(&mut command).unwrap();
        assert!(matches!(ended, Errand::Interrupted), "{ended:?}");
        assert!(!is_alive(&pid.join().unwrap()));
        let ended = limit.run(&mut command).unwrap();
        assert!(matches!(ended, Errand::Interrupted), "{ended:?}");
    }
}
