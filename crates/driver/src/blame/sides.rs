//! The sides of a comparison that are open, each opened when it is first needed, and the time that is left.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use unflake_core::blame::question::Side as Where;
use unflake_core::blame::shares::share;
use unflake_core::test::TestId;

use super::base::Unready;
use super::shared_runs::SharedRuns;
use super::side::{Known, Side, Site};
use crate::framework::project::Project;
use crate::lab::session::{Halt, Session};

/// The open sides.
#[derive(Default)]
pub(super) struct Sides {
    opened: HashMap<Seat, Result<Side, Unready>>,
    pub(super) deadline: Option<Instant>,
    /// How long it took to make the base ready, as far as no suspect was given that time back.
    pub(super) prepared: Duration,
    pub(super) shared: SharedRuns,
    /// The sets of polluters that were found.
    pub(super) polluters: Vec<Vec<TestId>>,
    /// What is known of the VMs here, and of those at the base.
    known: [Option<Known>; 2],
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

    /// Whether there is no time left.
    pub(super) fn is_over(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// When the share of the next of so many suspects is over; `None` without a limit.
    pub(super) fn share_among(&self, suspects: usize) -> Option<Instant> {
        let deadline = self.deadline?;
        let left = deadline.saturating_duration_since(Instant::now());
        Some(deadline.min(Instant::now() + share(left, suspects)))
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
    ) -> Result<Result<(), Unready>, Halt> {
        let Sides {
            opened,
            deadline,
            prepared,
            known,
            ..
        } = sides;
        let (before, other) = (
            &known[usize::from(seat.is_base)],
            &known[usize::from(!seat.is_base)],
        );
        let before = before.clone().unwrap_or_else(|| Known {
            imports_first_from: other.clone().unwrap_or_default().imports_first_from,
            seeded: self.listings.alike.clone().filter(|_| !seat.is_base),
        });
        let opened = match opened.entry(seat) {
            Entry::Occupied(opened) => opened.into_mut(),
            Entry::Vacant(place) => place.insert(if seat.is_base {
                let since = Instant::now();
                let project = self.project_at_base(*deadline)?;
                *prepared += since.elapsed();
                match project {
                    Ok(project) => self.open_base(project, seat, before)?,
                    Err(unready) => Err(unready),
                }
            } else {
                self.open_here(seat, before)?
            }),
        };
        if let Ok(side) = &*opened {
            known[usize::from(seat.is_base)] = Some(side.known());
        }
        Ok(opened.as_ref().map(|_| ()).map_err(Clone::clone))
    }

    fn open_here(&mut self, seat: Seat, known: Known) -> Result<Result<Side, Unready>, Halt> {
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
            known,
        };
        Ok(Side::open(self, site)?.map_err(Unready::CannotRun))
    }

    fn open_base(
        &self,
        project: Project,
        seat: Seat,
        known: Known,
    ) -> Result<Result<Side, Unready>, Halt> {
        let difference = self.known_difference();
        let difference = difference.expect("only where there is a base");
        let root = difference.root.clone();
        let site = Site {
            project,
            away_from: Some(&root),
            until: None,
            watched: Vec::new(),
            is_watched: seat.is_watched,
            known,
        };
        Ok(Side::open(self, site)?.map_err(Unready::CannotRun))
    }
}
