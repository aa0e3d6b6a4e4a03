//! The opening of a session: the first VM, its list of tests, and the mould of fresh VMs.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::thread;
use std::time::{Duration, Instant};

use unflake_core::event::{CollectionError, Event, Listing, Note};
use unflake_core::test::{Test, TestId};
use unflake_core::trial::{Rung, VmId};

use crate::framework::pytest::interpreter;
use crate::lab::listings::Listings;
use crate::lab::pending::OTHER_TEST;
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Mould, Session};
use crate::lab::suspect::Suspect;
use crate::protocol::hello::Inability;
use crate::protocol::messages::{Parsed, Worker, Workers};
use crate::vm::event::{Fate, Happening};

/// How long a fresh interpreter may take to list its tests, at least.
const COLLECTING: Duration = Duration::from_secs(60);

impl Session {
    /// Waits until a new interpreter has listed a suspect; what it said instead if it has not.
    pub(crate) fn await_test(&mut self, at: usize, vm: VmId) -> Result<Option<String>, Halt> {
        let Suspect { test, worker, .. } = &self.suspects[at];
        let (test, worker) = (test.clone(), worker.clone());
        self.await_tests(std::slice::from_ref(&test), worker.as_ref(), vm)
    }

    /// The same for any tests.
    pub(crate) fn await_tests(
        &mut self,
        tests: &[TestId],
        worker: Option<&Worker>,
        vm: VmId,
    ) -> Result<Option<String>, Halt> {
        let patience = COLLECTING.max(self.collecting * 10);
        let deadline = Instant::now() + patience;
        loop {
            match self.next(Some(deadline))? {
                Happening::Deadline => {
                    self.fleet.kill(vm);
                    return Ok(Some(format!(
                        "it had not listed its tests after {patience:?}"
                    )));
                }
                Happening::Parsed(parsed, _) if parsed == vm => {
                    self.fleet.collect(vm, worker.cloned());
                }
                Happening::Ready(ready, collected) if ready == vm => {
                    let listed = collected.tests.iter().map(|listed| listed.name.to_id());
                    let listed: HashSet<TestId> = listed.collect();
                    let is_there = tests.iter().all(|test| listed.contains(test));
                    let is_other = |test: &TestId| self.is_other_test(test, vm, Rung::Fresh);
                    if tests.iter().any(is_other) {
                        return Ok(Some(OTHER_TEST.to_owned()));
                    }
                    if is_there && !collected.blocked {
                        return Ok(None);
                    }
                    let errors = collected.errors.into_iter().map(|error| error.text);
                    return Ok(Some(errors.collect::<Vec<_>>().join("\n")));
                }
                Happening::Ended(ended, fate) if ended == vm => {
                    return Ok(Some(fate.output.text(Duration::from_secs(1))));
                }
                unrelated => drop(unrelated),
            }
        }
    }

    /// Starts the first VM and lists its tests. As a guest it writes none of the framework's reports.
    pub(crate) fn open(&mut self, guest: bool) -> Result<VmId, Halt> {
        let since = Instant::now();
        let first = self.spawn(self.wish.project.start(guest, &[]))?;
        self.outlook.settle();
        let collected = loop {
            match self.next(None)? {
                Happening::Parsed(vm, parsed) => {
                    let worker = self.settle_jobs(&parsed)?;
                    self.fleet.collect(vm, worker);
                }
                Happening::Ready(_, collected) => break *collected,
                Happening::Unable(_, why, detail) => return Err(self.unable(why, detail)),
                Happening::Ended(_, fate) => return Err(self.ended_early(&fate)),
                unrelated => drop(unrelated),
            }
        };
        self.collecting = since.elapsed();
        self.tests = collected.tests.iter().map(listed_test).collect();
        let ids = self.tests.iter().map(|test| test.id.clone());
        self.places = ids.zip(0..).collect();
        if self.tests.is_empty() && collected.errors.is_empty() {
            return Err(Halt::Error(RunError::NoTests {
                framework: self.wish.project.framework(),
                root: collected.root,
                deselected: collected.deselected,
            }));
        }
        self.suite = Some(collected);
        self.listings = Listings::default();
        Ok(first)
    }

    /// What the tests run with, each with its version; `None` if the runner cannot say.
    pub(crate) fn installed(&self) -> Option<Vec<String>> {
        let hello = self.fleet.hello()?;
        let mut all = vec![hello.language(), hello.framework()];
        all.extend_from_slice(self.listed().installed.as_ref()?);
        Some(all)
    }

    /// Tells of the tests that are to be dealt with, and of what could not be collected.
    pub(crate) fn announce(&self, tests: Vec<Test>) {
        let collected = self.listed();
        let hello = self
            .fleet
            .hello()
            .expect("a VM that listed its tests has said hello");
        self.tell(Event::Listed(Listing {
            framework: hello.framework(),
            language: hello.language(),
            root: self.home_path(&collected.root),
            tests,
            deselected: collected.deselected,
            jobs: self.jobs,
            replay: collected.replay.clone(),
            options: self.wish.project.options(collected),
            installed: self.installed(),
            hash_seed: self.wish.project.hash_seed(),
        }));
        for error in &collected.errors {
            self.tell(Event::CollectionFailed(CollectionError {
                place: error.place.clone(),
                text: error.text.clone(),
            }));
        }
        let (settings, is_by_class) = self.wish.project.differences();
        if !settings.is_empty() {
            self.note(Note::OneVm {
                settings,
                is_by_class,
            });
        }
        for name in &collected.left_out {
            let report = name.clone();
            self.note(Note::OwnReportLeftOut { report });
        }
    }

    fn settle_jobs(&mut self, parsed: &Parsed) -> Result<Option<Worker>, Halt> {
        if parsed.interactive {
            return Err(Halt::Error(RunError::Interactive));
        }
        if parsed.collect_only {
            return Err(Halt::Error(RunError::CollectOnly));
        }
        let automatic = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let asked = parsed.workers.as_ref().map(|workers| match workers {
            Workers::Count(count) => *count,
            Workers::Automatic(_) => automatic,
        });
        self.jobs = self.wish.jobs.or(asked).unwrap_or(1).max(1);
        if asked.is_some() {
            self.note(Note::WorkersReplaced { jobs: self.jobs });
        }
        Ok(self.worker(0))
    }

    pub(crate) fn make_mould(&mut self, first: VmId) -> Result<(), Halt> {
        // It is as the first VM is; its own copies draw anew.
        let mould = self.fleet.fork(first, Vec::new())?;
        self.mould = loop {
            match self.next(None)? {
                // The copy is made; it may greet us while the suite runs.
                Happening::Forked(vm) if vm == first => break Mould::Vm(mould),
                Happening::Unforked(_, why) => break Mould::None { why, said: false },
                Happening::Ended(vm, fate) if vm == first => return Err(self.ended_early(&fate)),
                Happening::Ended(vm, fate) if vm == mould => {
                    break Mould::None {
                        why: fate.how,
                        said: false,
                    };
                }
                unrelated => drop(unrelated),
            }
        };
        Ok(())
    }

    fn unable(&self, why: Inability, detail: String) -> Halt {
        let python = self.wish.project.python();
        let Some(python) = python.map(ToString::to_string) else {
            return Halt::Error(RunError::NoJunit { detail });
        };
        Halt::Error(match why {
            Inability::NoFramework => RunError::NoPytest { python, detail },
            Inability::OldFramework => RunError::OldPytest {
                python,
                version: detail,
            },
        })
    }

    pub(crate) fn ended_early(&self, fate: &Fate) -> Halt {
        if let Some(python) = self.wish.project.python()
            && let Some((major, minor)) = interpreter::ask_version(python)
            && (major, minor) < interpreter::OLDEST
        {
            let python = python.to_string();
            return Halt::Error(RunError::OldPython {
                python,
                major,
                minor,
            });
        }
        Halt::Error(RunError::EndedEarly {
            framework: self.wish.project.framework(),
            how: fate.how.clone(),
            output: fate.output.text(Duration::from_secs(1)),
        })
    }
}

fn listed_test(listed: &crate::protocol::messages::Listed) -> Test {
    Test {
        id: listed.name.to_id(),
        file: listed.file.clone(),
        line: listed.line,
    }
}
