//! Batches: groups that are run to their end by who waits for them.

use std::collections::VecDeque;

use unflake_core::event::Event;
use unflake_core::nio::Setting;
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial};

use crate::lab::lane::{Group, Lane, Manner, News};
use crate::lab::session::{Halt, Session};

/// A trial with the number of its group.
type Done = (usize, Trial);

impl Session {
    /// Runs all groups, and gives the trials in the order in which they ended.
    pub(crate) fn run_groups(
        &mut self,
        lanes: &mut [Lane],
        groups: VecDeque<Vec<TestId>>,
        manner: Manner,
    ) -> Result<Vec<Trial>, Halt> {
        let trials = self.run_numbered(lanes, groups, manner)?;
        Ok(trials.into_iter().map(|(_, trial)| trial).collect())
    }

    /// Runs all groups, and gives the trials of each.
    pub(crate) fn run_each(
        &mut self,
        lanes: &mut [Lane],
        groups: &[Vec<TestId>],
        manner: Manner,
    ) -> Result<Vec<Vec<Trial>>, Halt> {
        let mut trials: Vec<Vec<Trial>> = vec![Vec::new(); groups.len()];
        for (group, trial) in self.run_numbered(lanes, groups.to_vec().into(), manner)? {
            trials[group].push(trial);
        }
        Ok(trials)
    }

    fn run_numbered(
        &mut self,
        lanes: &mut [Lane],
        groups: VecDeque<Vec<TestId>>,
        manner: Manner,
    ) -> Result<Vec<Done>, Halt> {
        let groups = groups.into_iter().enumerate();
        let mut groups: VecDeque<Group> = groups
            .map(|(number, tests)| Group {
                number,
                tests,
                manner,
            })
            .collect();
        let mut news = Vec::new();
        let mut trials = Vec::new();
        loop {
            for lane in lanes.iter_mut() {
                self.go_on(lane, &mut groups, &mut news)?;
            }
            self.tell_news(&mut news, &mut trials);
            if groups.is_empty() && lanes.iter().all(Lane::is_done) {
                for lane in lanes.iter_mut() {
                    self.drop_ahead(lane);
                }
                return Ok(trials);
            }
            self.turn_lanes(lanes, &mut news)?;
            self.tell_news(&mut news, &mut trials);
        }
    }

    /// Tells what lanes had to tell, and keeps the trials.
    fn tell_news(&self, news: &mut Vec<News>, trials: &mut Vec<Done>) {
        for one in news.drain(..) {
            match one {
                News::Started(test, vm, rung) => self.tell_start(&test, vm, rung),
                News::Ran(group, trial) => {
                    // The runs of a search are told as what they show.
                    if trial.rung != Rung::Once(Setting::Ordered) {
                        self.tell(Event::TrialEnded((*trial).clone()));
                    }
                    trials.push((group, *trial));
                }
                News::Ended(..) => {}
            }
        }
    }
}
