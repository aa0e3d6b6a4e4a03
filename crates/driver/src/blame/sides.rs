//! The sides of a comparison that are open, each opened when it is first needed, and the time that is left.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Instant;

use unflake_core::blame::question::Side as Where;
use unflake_core::test::TestId;

use super::shared_runs::SharedRuns;
use super::side::{Side, Site};
use crate::lab::session::{Halt, Session};

/// The open sides.
#[derive(Default)]
pub(super) struct Sides {
    opened: HashMap<Seat, Result<Side, String>>,
    pub(super) deadline: Option<Instant>,
    pub(super) shared: SharedRuns,
    /// The sets of polluters that were found.
    pub(super) polluters: Vec<Vec<TestId>>,
}

/// Which files a side has, and whether its VMs write down what they use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seat {
    pub(super) is_base: bool,
    pub(super) is_watched: bool,
}

impl Sides {
    /// None is open yet.
    pub(super) fn until(deadline: Option<Instant>) -> Self {
        Self {
            deadline,
            ..Self::default()
        }
    }

    /// A side, if it is open.
    pub(super) fn get(&self, seat: Seat) -> Option<&Side> {
        self.opened.get(&seat)?.as_ref().ok()
    }

    /// A side, if it is open, to run something there.
    pub(super) fn get_mut(&mut self, seat: Seat) -> Option<&mut Side> {
        self.opened.get_mut(&seat)?.as_mut().ok()
    }

    /// Ends all of them.
    pub(super) fn close(self) -> Result<(), Halt> {
        for side in self.opened.into_values().flatten() {
            side.close()?;
        }
        Ok(())
    }
}

impl Session {
    /// Where a run is made. Where watching slows nothing, all runs are made in the same VMs.
    pub(super) fn seat(&self, place: Where) -> Seat {
        let always = self.home.project.is_watched_for_nothing();
        let (is_base, is_watched) = match place {
            Where::Here => (false, always),
            Where::HereWatched => (false, true),
            Where::Base | Where::BaseInThisOrder => (true, always),
            Where::BaseWatched => (true, true),
        };
        Seat {
            is_base,
            is_watched,
        }
    }

    /// Opens a side, if it is not open; why that cannot be done, if it cannot.
    pub(super) fn open_side(
        &mut self,
        seat: Seat,
        sides: &mut Sides,
    ) -> Result<Result<(), String>, Halt> {
        let opened = match sides.opened.entry(seat) {
            Entry::Occupied(opened) => opened.into_mut(),
            Entry::Vacant(place) => place.insert(if seat.is_base {
                self.open_base(seat)?
            } else {
                self.open_here(seat)?
            }),
        };
        Ok(opened.as_ref().map(|_| ()).map_err(Clone::clone))
    }

    fn open_here(&mut self, seat: Seat) -> Result<Result<Side, String>, Halt> {
        let watched = match self.known_difference() {
            Some(difference) if seat.is_watched => {
                let changes = difference.changes.iter();
                changes.map(|change| change.file.path.clone()).collect()
            }
            Some(_) | None => Vec::new(),
        };
        let site = Site {
            project: self.home.project.clone(),
            away_from: None,
            until: Some(self.began),
            watched,
            is_watched: seat.is_watched,
        };
        Side::open(self, site)
    }

    fn open_base(&mut self, seat: Seat) -> Result<Result<Side, String>, Halt> {
        let difference = self.known_difference();
        let difference = difference.expect("only where there is a base");
        let project = match self.project_at_base(&difference) {
            Ok(project) => project,
            Err(why) => return Ok(Err(why)),
        };
        let root = difference.root.clone();
        let site = Site {
            project,
            away_from: Some(&root),
            until: None,
            watched: Vec::new(),
            is_watched: seat.is_watched,
        };
        Side::open(self, site)
    }
}
