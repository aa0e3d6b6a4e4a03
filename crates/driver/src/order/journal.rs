//! The orders that a search has run, written down as they end, so that a search that was cut off, even
//! by a kill, is taken up where it was.
//!
//! A search asks for the same orders again if nothing has changed, so each is answered from the journal
//! as often as it stands there. The journal is removed when the search is done.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Write};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use unflake_core::outcome::Outcome;
use unflake_core::test::{Test, TestId};
use unflake_core::trial::{Account, Birth, Fixtures, Rung, Trial, VmId};

/// The journal of one search.
pub(crate) struct Journal {
    path: Utf8PathBuf,
    file: Option<File>,
    tests: Vec<TestId>,
    numbers: HashMap<TestId, u32>,
    earlier: HashMap<Vec<u32>, VecDeque<Vec<Entry>>>,
    /// The number of orders that an earlier search answered.
    pub(crate) taken: usize,
}

/// One line: an order, and how its tests ended.
#[derive(Serialize, Deserialize)]
struct Line {
    order: Vec<u32>,
    ends: Vec<Entry>,
}

/// How a test ended: its number, a word, seconds, and a message.
#[derive(Clone, Serialize, Deserialize)]
struct Entry(u32, String, f64, String);

impl Journal {
    /// Opens the journal of a search in `folder`; `subject` is all that its answers depend on.
    pub(crate) fn open(folder: &Utf8Path, tests: &[Test], subject: impl Hash) -> Self {
        let tests: Vec<TestId> = tests.iter().map(|test| test.id.clone()).collect();
        let mut hasher = DefaultHasher::new();
        (subject, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
        tests.hash(&mut hasher);
        let path = folder.join(format!("{:016x}.jsonl", hasher.finish()));
        let numbers = tests.iter().cloned().zip(0..).collect();
        let mut journal = Self {
            path,
            file: None,
            tests,
            numbers,
            earlier: HashMap::new(),
            taken: 0,
        };
        // A journal is a help and no more: one that cannot be read or written is done without.
        drop(journal.read());
        journal.file = journal.append().ok();
        journal
    }

    fn read(&mut self) -> io::Result<()> {
        for line in BufReader::new(File::open(&self.path)?).lines() {
            // The last line of a search that was killed may be cut off.
            let Ok(line) = serde_json::from_str::<Line>(&line?) else {
                continue;
            };
            self.earlier
                .entry(line.order)
                .or_default()
                .push_back(line.ends);
        }
        Ok(())
    }

    fn append(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        File::options().create(true).append(true).open(&self.path)
    }

    /// The result of an order in an earlier search. Each of its runs is returned once.
    pub(crate) fn recall(&mut self, order: &[TestId], rung: Rung) -> Option<Vec<Trial>> {
        let entries = self
            .earlier
            .get_mut(&self.numbers_of(order)?)?
            .pop_front()?;
        self.taken += 1;
        let trials = entries.into_iter().enumerate();
        trials
            .map(|(before, entry)| self.to_trial(entry, rung, before))
            .collect()
    }

    /// Writes down how an order ended.
    pub(crate) fn note(&mut self, order: &[TestId], trials: &[Trial]) {
        let Some(order) = self.numbers_of(order) else {
            return;
        };
        let ends = trials.iter().map(|trial| {
            let number = self.numbers.get(&trial.test).copied().unwrap_or(u32::MAX);
            let message: String = trial.account.message.chars().take(200).collect();
            Entry(
                number,
                trial.outcome.label().to_owned(),
                trial.duration.as_secs_f64(),
                message,
            )
        });
        let ends = ends.collect();
        let Ok(mut line) = serde_json::to_vec(&Line { order, ends }) else {
            return;
        };
        line.push(b'\n');
        let is_written = self
            .file
            .as_mut()
            .is_some_and(|file| file.write_all(&line).is_ok());
        if !is_written {
            self.file = None;
        }
    }

    /// The search is done.
    pub(crate) fn remove(&self) {
        // That it is gone already is no harm.
        drop(fs::remove_file(&self.path));
    }

    fn numbers_of(&self, order: &[TestId]) -> Option<Vec<u32>> {
        order
            .iter()
            .map(|test| self.numbers.get(test).copied())
            .collect()
    }

    fn to_trial(&self, entry: Entry, rung: Rung, before: usize) -> Option<Trial> {
        let Entry(number, label, seconds, message) = entry;
        let test = self.tests.get(usize::try_from(number).ok()?)?.clone();
        let duration = Duration::try_from_secs_f64(seconds).ok()?;
        Some(Trial {
            test,
            rung,
            vm: VmId(0),
            birth: Birth::Fork,
            before,
            fixtures: Fixtures::AsInPlainRun,
            is_watched: false,
            outcome: to_outcome(&label, duration)?,
            duration,
            cost: duration,
            account: Account {
                message,
                ..Account::default()
            },
        })
    }
}

fn to_outcome(label: &str, after: Duration) -> Option<Outcome> {
    let how = "as in an earlier search".to_owned();
    let all = [
        Outcome::Passed,
        Outcome::Failed,
        Outcome::Errored,
        Outcome::Skipped,
        Outcome::ExpectedFailure,
        Outcome::UnexpectedPass,
        Outcome::NotRun,
        Outcome::TimedOut { after },
        Outcome::VmDied { how },
    ];
    all.into_iter().find(|outcome| outcome.label() == label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unflake_core::nio::Setting;

    fn tests() -> Vec<Test> {
        let named = ["a", "b"].map(|name| Test {
            id: TestId::new(name),
            file: String::new(),
            line: 1,
        });
        named.into()
    }

    const RUNG: Rung = Rung::Once(Setting::Ordered);

    fn trials(journal: &Journal, label: &str) -> Vec<Trial> {
        let entry = |number| Entry(number, label.to_owned(), 0.5, "why".to_owned());
        let both = [entry(0), entry(1)].into_iter();
        both.map(|entry| journal.to_trial(entry, RUNG, 0).unwrap())
            .collect()
    }

    #[test]
    fn what_was_run_is_not_run_again_after_a_kill() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(scratch.path()).unwrap();
        let order: Vec<TestId> = tests().into_iter().map(|test| test.id).collect();
        let mut first = Journal::open(folder, &tests(), "subject");
        assert!(first.recall(&order, RUNG).is_none());
        for label in ["passed", "crashed"] {
            first.note(&order, &trials(&first, label));
        }
        drop(first);
        let path = fs::read_dir(folder)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let mut text = fs::read(&path).unwrap();
        text.extend(b"{\"order\": [0, 1], \"en");
        fs::write(&path, text).unwrap();

        let mut second = Journal::open(folder, &tests(), "subject");
        let recalled = second.recall(&order, RUNG).unwrap();
        assert_eq!(
            recalled,
            trials(&second, "passed")
                .into_iter()
                .enumerate()
                .map(|(before, trial)| Trial { before, ..trial })
                .collect::<Vec<Trial>>()
        );
        assert!(second.recall(&order, RUNG).unwrap()[1].outcome.ends_vm());
        assert!(
            second.recall(&order, RUNG).is_none(),
            "each run counts once"
        );
        assert_eq!(second.taken, 2);
        assert!(
            Journal::open(folder, &tests(), "another")
                .recall(&order, RUNG)
                .is_none()
        );
        second.remove();
        assert!(
            Journal::open(folder, &tests(), "subject")
                .recall(&order, RUNG)
                .is_none()
        );
    }
}
