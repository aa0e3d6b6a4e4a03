//! What the history knows of a test before this session: how it fared at the base and before it.

use std::time::{Duration, SystemTime};

use camino::Utf8Path;
use unflake_core::blame::Known;
use unflake_core::failure::Fingerprint;
use unflake_core::test::TestId;
use unflake_driver::blame::memory::{AskedFailure, LastPass, Memory, Recollection};
use unflake_driver::git::clutter::Leftover;
use unflake_history::dates;
use unflake_history::engine::{self, Missing};
use unflake_history::run::TestName;
use unflake_history::store::evidence::Question;
use unflake_history::store::{Store, StoreError};

use super::own_files::{OwnFiles, left_behind};
use super::whence;

/// The memory of what ran in a folder before now, from the history, which is opened at each question: others may write to
/// it meanwhile.
pub(crate) fn of(own: &OwnFiles) -> Memory {
    Memory::new(History::new(own, dates::now()))
}

/// The history at a path, as far as it is about a folder.
struct History {
    own: OwnFiles,
    source: String,
    /// This session writes too, and is no evidence about itself.
    began: i64,
}

impl History {
    fn new(own: &OwnFiles, began: i64) -> Self {
        Self {
            own: own.clone(),
            source: whence::source(&own.folder),
            began,
        }
    }

    fn open(&self) -> Result<Box<dyn Store>, StoreError> {
        engine::open(self.own.store.as_std_path(), Missing::Refuse)
    }

    fn read_known(&self, asked: &AskedFailure<'_>) -> Result<Option<Known>, StoreError> {
        let to_name = |(test, fingerprint): &(TestId, Fingerprint)| {
            let name = TestName {
                name: test.name().to_owned(),
                copy: test.copy(),
                is_own: true,
            };
            (name, fingerprint.as_str().to_owned())
        };
        let names: Vec<(TestName, String)> = asked.names.iter().map(to_name).collect();
        let question = Question {
            source: &self.source,
            installed: &whence::installed(asked.installed),
            names: &names,
            before: self.began,
        };
        let evidence = self.open()?.evidence(&question, asked.commits)?;
        Ok(evidence.map(|found| Known {
            runs: found.runs,
            failures: found.failures,
            last: found.last,
        }))
    }
}

/// Without a history, or with one that cannot be read, nothing is known: the report says that nobody looked.
impl Recollection for History {
    fn known(&self, asked: &AskedFailure<'_>) -> Option<Known> {
        self.read_known(asked).unwrap_or_default()
    }

    fn first_tested(&self, commit: &str) -> Option<SystemTime> {
        let tested = self
            .open()
            .and_then(|store| store.first_tested(&self.source, commit, self.began));
        let since = u64::try_from(tested.unwrap_or_default()?).ok()?;
        Some(SystemTime::UNIX_EPOCH + Duration::from_millis(since))
    }

    fn last_pass(&self, installed: &[String]) -> Option<LastPass> {
        self.own.since_passed(installed)
    }

    fn left_behind(&self, root: &Utf8Path) -> Vec<Leftover> {
        left_behind(&self.own.store, root)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use tempfile::TempDir;
    use unflake_core::event::{Event, Listing};
    use unflake_core::outcome::Outcome;
    use unflake_core::trial::{Account, Birth, Fixtures, Rung, Trial, VmId};

    use super::super::recorder::Recorder;
    use super::*;

    fn git(folder: &Utf8Path, arguments: &[&str]) -> String {
        let own = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let mut command = Command::new("git");
        command.args(own).args(arguments).current_dir(folder);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn account(message: &str) -> Account {
        Account {
            message: message.to_owned(),
            ..Account::default()
        }
    }

    fn trial(test: &str, outcome: Outcome, rung: Rung) -> Event {
        Event::TrialEnded(Trial {
            test: TestId::new(test),
            rung,
            vm: VmId(3),
            birth: Birth::Exec,
            before: 0,
            fixtures: Fixtures::AsInPlainRun,
            is_watched: false,
            outcome,
            duration: Duration::ZERO,
            cost: Duration::ZERO,
            account: account("KeyError: 'k1'"),
        })
    }

    fn own(store: &Utf8Path, folder: &Utf8Path) -> OwnFiles {
        OwnFiles::new(store, folder, Vec::new(), SystemTime::now())
    }

    /// Records a run of two tests, the second of which fails and passes when it runs again.
    fn record(path: &Utf8Path, folder: &Utf8Path, installed: &[String]) {
        let mut recorder = Recorder::new(&own(path, folder));
        recorder.read(&Event::Listed(Listing {
            framework: "pytest 9".to_owned(),
            language: "Python 3".to_owned(),
            root: folder.to_string(),
            tests: Vec::new(),
            deselected: 0,
            jobs: 1,
            replay: Vec::new(),
            options: Vec::new(),
            installed: Some(installed.to_vec()),
            hash_seed: None,
        }));
        recorder.read(&trial("a", Outcome::Passed, Rung::Suite));
        recorder.read(&trial("b", Outcome::Failed, Rung::Suite));
        recorder.read(&trial("b", Outcome::Failed, Rung::Immediate));
        recorder.read(&trial("b", Outcome::Passed, Rung::Fresh));
        recorder.finish().unwrap();
    }

    #[test]
    fn what_was_recorded_at_a_commit_is_known_as_long_as_the_tree_was_clean() {
        let temporary = TempDir::new().unwrap();
        let folder = Utf8Path::from_path(temporary.path()).unwrap().join("shop");
        fs::create_dir(&folder).unwrap();
        git(&folder, &["init", "-q"]);
        fs::write(folder.join("a.py"), "").unwrap();
        git(&folder, &["add", "."]);
        git(&folder, &["commit", "-qm", "one"]);
        let head = git(&folder, &["rev-parse", "HEAD"]);
        let path = folder.with_file_name("history.db");
        let installed = ["pytest 9".to_owned()];
        let memory = |began| Memory::new(History::new(&own(&path, &folder), began));
        let known = |test: &str, message: &str, installed: &[String], began| {
            let found = memory(began).known(&AskedFailure {
                names: &[(
                    TestId::new(test),
                    Fingerprint::of(&Outcome::Failed, &account(message)),
                )],
                commits: &|commit| commit == head,
                installed,
            });
            found.map(|known| (known.runs, known.failures))
        };
        assert_eq!(known("b", "KeyError: 'k7'", &installed, i64::MAX), None);
        assert_eq!(memory(i64::MAX).first_tested(&head), None);
        record(&path, &folder, &installed);
        assert!(memory(i64::MAX).first_tested(&head).is_some());
        assert_eq!(
            memory(0).first_tested(&head),
            None,
            "this session is no evidence"
        );
        fs::write(folder.join("a.py"), "changed = 1").unwrap();
        record(&path, &folder, &installed);
        let one_failure = Some((1, 1));
        assert_eq!(
            known("b", "KeyError: 'k7'", &installed, i64::MAX),
            one_failure
        );
        assert_eq!(known("b", "ValueError", &installed, i64::MAX), Some((1, 0)));
        assert_eq!(
            known("a", "KeyError: 'k7'", &installed, i64::MAX),
            Some((1, 0))
        );
        assert_eq!(known("b", "KeyError: 'k7'", &[], i64::MAX), None);
        assert_eq!(known("b", "KeyError: 'k7'", &installed, 0), None);
        let store = engine::open(path.as_std_path(), Missing::Refuse).unwrap();
        let past = store.past_of(2).unwrap().unwrap();
        assert_eq!(
            past.iter()
                .map(|test| test.name.as_str())
                .collect::<Vec<_>>(),
            ["a"]
        );
    }
}
