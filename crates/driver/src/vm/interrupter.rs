//! Stops a run from another thread.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::vm::pipes::Incoming;

/// Stops a run from another thread, a signal handler's for example: all fleets that share it.
#[derive(Clone, Default)]
pub struct Interrupter(Arc<Mutex<Vec<Sender<Incoming>>>>);

impl Interrupter {
    /// Asks the run to stop. It does so at once; calling it again changes nothing.
    pub fn interrupt(&self) {
        for fleet in self.fleets().iter() {
            // A fleet that is over needs no stopping.
            drop(fleet.send(Incoming::Interrupted));
        }
    }

    /// Whoever is to hear of it.
    pub(crate) fn fleets(&self) -> MutexGuard<'_, Vec<Sender<Incoming>>> {
        self.0.lock().expect("nobody panics with it")
    }
}
