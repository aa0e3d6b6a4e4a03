//! Stops a run from another thread.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::vm::pipes::Incoming;

/// Stops a run from another thread, a signal handler's for example: all that share it.
#[derive(Clone, Default)]
pub struct Interrupter(Arc<Mutex<Listeners>>);

/// The queues that are to hear of an interruption.
#[derive(Default)]
struct Listeners {
    senders: Vec<Sender<Incoming>>,
    is_interrupted: bool,
}

impl Interrupter {
    /// Asks the run to stop. It does so at once; calling it again changes nothing.
    pub fn interrupt(&self) {
        let mut listeners = self.listeners();
        listeners.is_interrupted = true;
        for sender in &listeners.senders {
            // Who is over needs no stopping.
            drop(sender.send(Incoming::Interrupted));
        }
    }

    /// Has one more hear of it, also if it has happened already.
    pub(crate) fn tell(&self, sender: Sender<Incoming>) {
        let mut listeners = self.listeners();
        if listeners.is_interrupted {
            // As above.
            drop(sender.send(Incoming::Interrupted));
        }
        listeners.senders.push(sender);
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().expect("nobody panics with it")
    }
}
