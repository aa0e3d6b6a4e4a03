//! The state that each test leaves changed when it runs alone, whether or not another test minds.

use camino::Utf8PathBuf;
use unflake_core::event::{Event, Note, Stage};
use unflake_core::latent::{Source, rank};
use unflake_core::nio::Setting;
use unflake_core::order::orders::by_file;
use unflake_core::state::Piece;
use unflake_core::test::TestId;

use crate::lab::lane::Manner;
use crate::lab::session::{Halt, Session};
use crate::order::search::Search;
use crate::protocol::messages::Command;
use crate::vm::event::Happening;

/// The number of tests between two signs of progress.
const CHUNK: usize = 25;

impl Session {
    /// Runs each test alone in a copy of a VM that remembers its state, and ranks what they leave.
    pub(crate) fn find_latent(&mut self, search: &Search) -> Result<(), Halt> {
        if !self.wish.project.tells_state() || !self.wish.project.can_copy() {
            self.note(Note::StateUnseen);
            return Ok(());
        }
        let mut lane = self.open_ready_lane()?;
        let marked = self.tell_state(&lane, &Command::Mark {})?;
        if !matches!(marked, Some(Happening::Marked(..))) {
            return self.leave(Some(lane.vm));
        }
        lane.compares = true;
        let mut lanes = [lane];
        let tests: Vec<TestId> = self.tests.iter().map(|test| test.id.clone()).collect();
        let mut left: Vec<(TestId, String, Vec<Piece>)> = Vec::new();
        'all: for chunk in tests.chunks(CHUNK) {
            if search.is_over() {
                break;
            }
            for test in chunk {
                let manner = Manner::once(Setting::Ordered);
                self.run_each(&mut lanes, &[vec![test.clone()]], manner)?;
                if lanes[0].is_spent {
                    // A new VM remembers nothing: what comes after this test is not looked at.
                    break 'all;
                }
                let pieces = std::mem::take(&mut lanes[0].changed);
                left.push((test.clone(), self.file_of(test).to_owned(), pieces));
            }
            self.tell(Event::Searching {
                stage: Stage::Leftovers,
                done: left.len(),
                total: tests.len(),
            });
        }
        let [lane] = lanes;
        self.leave(Some(lane.vm))?;
        let root = Utf8PathBuf::from(self.home_path(&self.listed().root));
        let files = by_file(&self.tests)
            .into_iter()
            .map(|tests| tests[0].file.clone());
        let written: Vec<(String, String)> = files
            .map(|file| {
                // A file that cannot be read has no name in it.
                let text = std::fs::read_to_string(root.join(&file)).unwrap_or_default();
                (file, text)
            })
            .collect();
        let sources: Vec<Source<'_>> = written
            .iter()
            .map(|(file, text)| Source { file, text })
            .collect();
        for latent in rank(&left, &sources) {
            self.tell(Event::Latent(latent));
        }
        Ok(())
    }
}
