//! The orders in which a suite is run to see which tests depend on order.
//!
//! Each is fixed by the seed and its number, so that a run can be repeated and cut into slices.

use std::collections::HashMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::test::{Test, TestId};

/// The way in which an order was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The framework's own.
    Own,
    /// The framework's own, backwards.
    Reversed,
    /// Files as they are, tests shuffled within each file.
    WithinFiles,
    /// Files shuffled, tests within each as they are.
    Files,
    /// All tests shuffled.
    All,
    /// Files so that in a series of such orders each stands right before each other one.
    Neighbours,
}

impl Kind {
    /// The words that follow "in" or "with".
    pub fn label(self) -> &'static str {
        match self {
            Self::Own => "the suite's own order",
            Self::Reversed => "the reversed order",
            Self::WithinFiles => "tests shuffled within files",
            Self::Files => "files shuffled",
            Self::All => "all tests shuffled",
            Self::Neighbours => "files next to each other",
        }
    }
}

/// The order of this number.
///
/// The first two are the suite's own and its reverse, so that of any two tests each has run after the
/// other; then shuffled ones take turns with those that bring each pair of files together.
pub fn order(tests: &[Test], seed: u64, number: usize) -> (Kind, Vec<TestId>) {
    let files = by_file(tests);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number as u64);
    let kind = match number {
        0 => Kind::Own,
        1 => Kind::Reversed,
        _ if files.len() < 2 => Kind::All,
        _ => match (number - 2) % 4 {
            0 => Kind::All,
            1 => Kind::Neighbours,
            2 => Kind::WithinFiles,
            _ => Kind::Files,
        },
    };
    let ids = |tests: Vec<&Test>| tests.into_iter().map(|test| test.id.clone()).collect();
    let mut all: Vec<&Test> = tests.iter().collect();
    let order = match kind {
        Kind::Own => ids(all),
        Kind::Reversed => {
            all.reverse();
            ids(all)
        }
        Kind::All => {
            all.shuffle(&mut random);
            ids(all)
        }
        Kind::WithinFiles => {
            let mut files = files;
            for file in &mut files {
                file.shuffle(&mut random);
            }
            ids(files.concat())
        }
        Kind::Files => {
            let mut files = files;
            files.shuffle(&mut random);
            ids(files.concat())
        }
        Kind::Neighbours => {
            let row = row_of_neighbours(files.len(), (number - 2) / 4);
            ids(row
                .into_iter()
                .flat_map(|file| files[file].clone())
                .collect())
        }
    };
    (kind, order)
}

/// An order in which all tests stand next to each other as row `number` of a design says: after all rows
/// each test has run right after each other one. The seed decides which rows come first.
pub fn neighbours(tests: &[Test], seed: u64, number: usize) -> Vec<TestId> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut shuffled: Vec<&Test> = tests.iter().collect();
    shuffled.shuffle(&mut random);
    let row = row_of_neighbours(tests.len(), number);
    row.into_iter().map(|at| shuffled[at].id.clone()).collect()
}

/// Each test by itself right after a set of culprits.
pub fn after_each(set: &[TestId], tests: &[TestId]) -> Vec<Vec<TestId>> {
    let singles = tests.iter().map(std::slice::from_ref);
    singles.map(|one| [set, one].concat()).collect()
}

/// All tests together after a set of culprits, forwards and backwards: one that the set reaches shows in
/// one of the two, unless others undo it both before and after its place. Those that are known to undo
/// something come by themselves.
pub fn after_once(set: &[TestId], tests: &[TestId], cleaners: &[TestId]) -> Vec<Vec<TestId>> {
    let all = tests.iter().cloned();
    let (apart, mut row): (Vec<TestId>, Vec<TestId>) =
        all.partition(|test| cleaners.contains(test));
    let mut orders = after_each(set, &apart);
    orders.push([set, &row].concat());
    row.reverse();
    orders.push([set, &row].concat());
    orders
}

/// The number of orders of `Neighbours` that bring each file right before each other one.
pub fn neighbour_rows(files: usize) -> usize {
    if files.is_multiple_of(2) {
        files
    } else {
        2 * files
    }
}

/// A row of a design (Williams 1949) in which each number stands right before each other one equally
/// often: 0, n-1, 1, n-2, … shifted by the row's number, and for odd n also the same backwards.
fn row_of_neighbours(count: usize, row: usize) -> Vec<usize> {
    let row = row % neighbour_rows(count).max(1);
    let shift = row % count;
    let zigzag = (0..count).map(|at| {
        if at % 2 == 0 {
            at / 2
        } else {
            count - 1 - at / 2
        }
    });
    let mut numbers: Vec<usize> = zigzag.map(|number| (number + shift) % count).collect();
    if row >= count {
        numbers.reverse();
    }
    numbers
}

/// The tests of each file, in the framework's order.
pub fn by_file(tests: &[Test]) -> Vec<Vec<&Test>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut files: Vec<Vec<&Test>> = Vec::new();
    for test in tests {
        let place = *places.entry(&test.file).or_insert_with(|| {
            files.push(Vec::new());
            files.len() - 1
        });
        files[place].push(test);
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn suite(files: usize, each: usize) -> Vec<Test> {
        let places = (0..files).flat_map(|file| (0..each).map(move |at| (file, at)));
        places
            .map(|(file, at)| Test {
                id: TestId::new(&format!("test_{file}.py::test_{at}")),
                file: format!("test_{file}.py"),
                line: 1,
            })
            .collect()
    }

    #[test]
    fn every_order_has_every_test_once_and_is_fixed_by_its_seed() {
        let suite = suite(5, 7);
        let all: HashSet<TestId> = suite.iter().map(|test| test.id.clone()).collect();
        for number in 0..20 {
            let (_, made) = order(&suite, 7, number);
            assert_eq!(made.len(), suite.len());
            assert_eq!(made.iter().cloned().collect::<HashSet<TestId>>(), all);
            assert_eq!(order(&suite, 7, number).1, made);
        }
        assert_ne!(order(&suite, 7, 2), order(&suite, 8, 2));
        assert_ne!(order(&suite, 7, 2).1, order(&suite, 7, 6).1);
    }

    #[test]
    fn each_file_stands_right_before_each_other_one() {
        for count in 2..12 {
            let mut pairs = HashSet::new();
            for row in 0..neighbour_rows(count) {
                let numbers = row_of_neighbours(count, row);
                pairs.extend(numbers.windows(2).map(|pair| (pair[0], pair[1])));
            }
            assert_eq!(pairs.len(), count * (count - 1), "{count} files");
        }
    }

    #[test]
    fn each_test_stands_right_before_each_other_one() {
        let suite = suite(3, 3);
        let mut pairs = HashSet::new();
        for row in 0..neighbour_rows(suite.len()) {
            let order = neighbours(&suite, 7, row);
            pairs.extend(
                order
                    .windows(2)
                    .map(|pair| (pair[0].clone(), pair[1].clone())),
            );
        }
        assert_eq!(pairs.len(), 9 * 8);
    }

    #[test]
    fn each_test_comes_after_a_set_before_and_after_each_other_one() {
        let ids = |names: &str| -> Vec<TestId> {
            names
                .chars()
                .map(|name| TestId::new(&name.to_string()))
                .collect()
        };
        let orders = after_once(&ids("p"), &ids("abcd"), &ids("c"));
        assert_eq!(orders, [ids("pc"), ids("pabd"), ids("pdba")]);
        assert_eq!(after_each(&ids("pq"), &ids("ab")), [ids("pqa"), ids("pqb")]);
    }

    #[test]
    fn tests_of_a_file_stay_together_where_they_should() {
        let suite = suite(4, 5);
        let file = |test: &TestId| test.name().split("::").next().unwrap().to_owned();
        for number in 0..30 {
            let (kind, made) = order(&suite, 1, number);
            let mut files: Vec<String> = made.iter().map(file).collect();
            files.dedup();
            assert_eq!(files.len() == 4, kind != Kind::All, "{kind:?}");
        }
    }
}
