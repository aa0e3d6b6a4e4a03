//! The kind of cause that a difference looks like: by what is called, by values, by threads.

use crate::why::category::Category;
use crate::why::difference::common_values;
use crate::why::ledger::{Evidence, Ledger, Side, Sides};
use crate::why::predicate::{Claim, Predicate};
use crate::why::trace::Kind;

/// Numbers that differ by no more, in relation to their size, differ by rounding.
const ROUNDING: f64 = 1e-12;
/// The most calls of one place that are read for the order of their values.
const SEQUENCE: usize = 1000;

impl Ledger {
    /// The kind of cause that a difference looks like; `None` if like none.
    pub(crate) fn category(
        &self,
        predicate: &Predicate,
        values: &Sides<Vec<String>>,
    ) -> Option<Category> {
        let by_threads = || self.thread_category(predicate);
        if matches!(predicate.claim, Claim::After(_)) {
            return by_threads();
        }
        match self.sites[predicate.place.site as usize].kind {
            Kind::Time => Some(Category::Time),
            Kind::Randomness => Some(Category::Randomness),
            Kind::Network => Some(Category::Network),
            Kind::Io => Some(Category::Io),
            Kind::Unordered => Some(Category::UnorderedCollection),
            Kind::Leftover => Some(Category::ResourceLeak),
            Kind::Plain | Kind::Start | Kind::Wait | Kind::Lock => match predicate.claim {
                Claim::After(_) | Claim::Slow(_) | Claim::Fast(_) => by_threads(),
                Claim::Reached
                | Claim::Repeats
                | Claim::Returns(_)
                | Claim::OneOf { .. }
                | Claim::Contains { .. }
                | Claim::AtMost(_)
                | Claim::AtLeast(_)
                | Claim::Raises(_) => self.value_category(predicate, values).or_else(by_threads),
            },
        }
    }
}

impl Ledger {
    /// The kind of cause that a difference looks like by its values alone.
    pub(crate) fn value_category(
        &self,
        predicate: &Predicate,
        values: &Sides<Vec<String>>,
    ) -> Option<Category> {
        by_values(values).or_else(|| self.by_sequence(predicate))
    }

    /// Calls of one place that return the same values in another order were made in the order of a
    /// collection.
    fn by_sequence(&self, predicate: &Predicate) -> Option<Category> {
        let place = &predicate.place;
        let rows = self.rows_at(place.site, place.thread);
        let [passing, failing] = [Side::Passing, Side::Failing].map(|side| {
            let first = |row: &Evidence| common_values(row, side).into_iter().next();
            let values = rows.iter().take(SEQUENCE).filter_map(|row| first(row));
            values.collect::<Vec<String>>()
        });
        let sorted = |values: &[String]| {
            let mut values = values.to_vec();
            values.sort_unstable();
            values
        };
        let is_shuffled = passing != failing && sorted(&passing) == sorted(&failing);
        is_shuffled.then_some(Category::UnorderedCollection)
    }

    /// Whether a thread was started by another, or by one that it started.
    fn is_started(&self, thread: u32, by: u32) -> bool {
        let mut at = self.parents[thread as usize];
        while let Some(parent) = at {
            if parent == by {
                return true;
            }
            at = self.parents[parent as usize].filter(|next| *next != parent);
        }
        false
    }

    /// Whether the two threads of an order are a thread and one that it started.
    pub(crate) fn is_family(&self, predicate: &Predicate) -> bool {
        let own = predicate.place.thread;
        let Claim::After(other) = &predicate.claim else {
            return false;
        };
        self.is_started(other.thread, own) || self.is_started(own, other.thread)
    }

    /// The category of an order of threads: a thread that does not wait for one that it started waits too little;
    /// other threads meet by chance.
    pub(crate) fn thread_category(&self, predicate: &Predicate) -> Option<Category> {
        if self.threads.len() < 2 {
            return None;
        }
        let own = predicate.place.thread;
        let is_async = match &predicate.claim {
            Claim::After(other) => self.is_started(other.thread, own),
            // The thing that was started took longer than its starter expected.
            Claim::Reached
            | Claim::Repeats
            | Claim::Returns(_)
            | Claim::OneOf { .. }
            | Claim::Contains { .. }
            | Claim::AtMost(_)
            | Claim::AtLeast(_)
            | Claim::Raises(_)
            | Claim::Slow(_)
            | Claim::Fast(_) => self.sites.iter().any(|site| site.kind == Kind::Wait),
        };
        Some(if is_async {
            Category::AsyncWait
        } else {
            Category::Concurrency
        })
    }
}

/// The kind of cause that the values themselves tell: numbers that differ by rounding, or the same things in another
/// order.
fn by_values(values: &Sides<Vec<String>>) -> Option<Category> {
    let [Some(passing), Some(failing)] = values.each_ref().map(|values| values.first()) else {
        return None;
    };
    if let (Ok(passing), Ok(failing)) = (passing.parse::<f64>(), failing.parse::<f64>()) {
        let size = f64::max(passing.abs(), failing.abs());
        let distance = (passing - failing).abs();
        let is_rounding = distance > 0.0 && distance <= ROUNDING * size;
        return is_rounding.then_some(Category::FloatingPoint);
    }
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_shuffled = passing != failing && sorted(passing) == sorted(failing);
    is_shuffled.then_some(Category::UnorderedCollection)
}
