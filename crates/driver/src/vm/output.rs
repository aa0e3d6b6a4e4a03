//! The standard output and error of a VM: always drained, and kept only in part.

use std::io::{PipeReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// The number of bytes of a VM's output that are kept: the last ones.
const KEPT: usize = 64 * 1024;

/// The time for which the drain rests after a few bytes.
const NAP: Duration = Duration::from_millis(10);

/// The last part of what a VM wrote. Clones share it.
#[derive(Clone, Default)]
pub struct Output {
    shared: Arc<(Mutex<Kept>, Condvar)>,
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    has_ended: bool,
}

impl Output {
    /// Drains `pipe` in the background, so that no test can block on it or fill the memory.
    pub fn drain(pipe: PipeReader) -> Self {
        let output = Self::default();
        let kept = output.clone();
        thread::spawn(move || kept.fill(pipe));
        output
    }

    /// The last part of what was written.
    ///
    /// Waits at most `patience` for the end of it: a process that outlives its VM may hold the pipe.
    pub fn text(&self, patience: Duration) -> String {
        let (lock, ended) = &*self.shared;
        let (kept, _) = ended
            .wait_timeout_while(guard(lock), patience, |kept| !kept.has_ended)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        String::from_utf8_lossy(&kept.bytes).into_owned()
    }

    fn fill(&self, mut pipe: PipeReader) {
        let (lock, ended) = &*self.shared;
        let mut chunk = vec![0; 64 * 1024];
        // An error on the pipe is its end for us: there is nobody left to read from.
        while let Ok(count @ 1..) = pipe.read(&mut chunk) {
            let mut kept = guard(lock);
            kept.bytes.extend_from_slice(&chunk[..count]);
            let surplus = kept.bytes.len().saturating_sub(KEPT);
            kept.bytes.drain(..surplus);
            drop(kept);
            if count < chunk.len() / 4 {
                // Dots and names come one by one: to wake up for several leaves the processor to the
                // tests. The pipe holds far more than they write in the meantime.
                thread::sleep(NAP);
            }
        }
        guard(lock).has_ended = true;
        ended.notify_all();
    }
}

/// The lock is held only for copies that cannot panic half-way, so a poisoned one is still whole.
fn guard(lock: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    lock.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_the_last_part_of_a_flood_is_kept() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let output = Output::drain(reader);
        for _ in 0..100 {
            writer.write_all(&[b'x'; 10_000]).unwrap();
        }
        writer.write_all(b"the end").unwrap();
        drop(writer);
        let text = output.text(Duration::from_secs(60));
        assert_eq!(text.len(), KEPT);
        assert!(text.ends_with("the end"));
    }
}
