//! Suggested changes, each seen to help in a copy before it is shown.

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::edit::{Edit, apply, to_diff};
use unflake_core::fix::closing::{KINDS, close_after};
use unflake_core::fix::copying::{Code, copy_first};
use unflake_core::fix::java::put_back;
use unflake_core::fix::{Fix, Names, suggest};
use unflake_core::nio::Setting;
use unflake_core::state::{Cause, Piece};
use unflake_core::test::TestId;
use unflake_core::trial::Trial;

use crate::cause::find::Family;
use crate::framework::project::Project;
use crate::lab::lane::Manner;
use crate::lab::session::{Halt, Session};
use crate::lab::start_error::StartError;
use crate::protocol::messages::Between;

/// The most suggestions that are tried for one finding.
const MOST_TRIES: usize = 3;

/// A change of a file that may help.
struct Suggestion {
    patched: String,
    fix: Fix,
}

impl Session {
    /// Adds to each cause a change with which the test passes after the culprits, if
    /// one is known. Where a test is its own culprit, it must pass when it is run twice.
    pub(crate) fn add_fixes(
        &mut self,
        family: &Family,
        causes: &mut [Option<Cause>],
    ) -> Result<(), Halt> {
        let mut open: Vec<usize> = (0..causes.len())
            .filter(|at| causes[*at].is_some())
            .collect();
        while let Some(first) = open.first().copied() {
            // A change that helps one of them may well help all with the same cause.
            let same = |at: &usize| is_same(causes[*at].as_ref(), causes[first].as_ref());
            let (mut alike, rest): (Vec<usize>, Vec<usize>) = open.into_iter().partition(same);
            open = rest;
            let suggestions = causes[first]
                .as_ref()
                .map(|cause| self.suggestions(family, cause));
            for suggestion in suggestions.into_iter().flatten() {
                let tests: Vec<TestId> = alike.iter().map(|at| family.tests[*at].clone()).collect();
                let helped = self.helped(&suggestion, family, &tests)?;
                for at in &alike {
                    if let Some(cause) = &mut causes[*at]
                        && helped.contains(&family.tests[*at])
                    {
                        cause.fix = Some(suggestion.fix.clone());
                    }
                }
                alike.retain(|at| !helped.contains(&family.tests[*at]));
                if alike.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Changes that would help, in the order in which they are tried: what does away with the change of
    /// state comes before what puts it back.
    fn suggestions(&self, family: &Family, cause: &Cause) -> Vec<Suggestion> {
        let mut all = Vec::new();
        if !self.is_java() {
            all.extend(self.copies(family, cause));
            all.extend(self.closings(family, cause));
        }
        all.extend(self.fixtures(family, cause));
        all
    }

    fn is_java(&self) -> bool {
        matches!(self.wish.project, Project::Maven(_))
    }

    /// Copies in place of what is changed, where that was written.
    fn copies(&self, family: &Family, cause: &Cause) -> Vec<Suggestion> {
        let files: Vec<String> = self.culprit_files(family);
        let places = cause.shown.iter().filter_map(|shown| shown.place.as_ref());
        let made = places.filter_map(|place| {
            let is_test = files.contains(&place.file);
            let code = if is_test { Code::Test } else { Code::Project };
            let line = usize::try_from(place.line).ok()?.checked_sub(1)?;
            self.suggestion(&place.file, |source| copy_first(source, line, code))
        });
        made.take(MOST_TRIES).collect()
    }

    /// Ends of what the culprits leave open.
    fn closings(&self, family: &Family, cause: &Cause) -> Vec<Suggestion> {
        // Open things can hardly be put back, so suspects count as well.
        let pieces = cause.shown.iter().chain(&cause.suspects);
        let mut open = pieces.filter(|shown| KINDS.contains(&shown.piece.kind.as_str()));
        let Some(open) = open.next() else {
            return Vec::new();
        };
        let mut all = Vec::new();
        for culprit in &family.culprits {
            let file = self.inside_tree(self.file_of(culprit));
            let place = open.place.as_ref().filter(|place| place.file == file);
            let line = place.and_then(|place| usize::try_from(place.line).ok()?.checked_sub(1));
            let name = culprit.name().rsplit("::").next().unwrap_or_default();
            let name = name.split('[').next().unwrap_or_default();
            let source = self.source(&file).unwrap_or_default();
            for edit in close_after(&source, name, line) {
                all.extend(self.suggestion(&file, |_| Some(edit)));
            }
        }
        all.truncate(MOST_TRIES);
        all
    }

    /// Fixtures, or methods in Java, in the culprits' files that would put back what matters.
    fn fixtures(&self, family: &Family, cause: &Cause) -> Vec<Suggestion> {
        let pieces: Vec<&Piece> = cause.shown.iter().map(|shown| &shown.piece).collect();
        let sets: Vec<Vec<&Piece>> = if cause.is_joint {
            vec![pieces]
        } else {
            pieces.into_iter().map(|piece| vec![piece]).collect()
        };
        let files = self.culprit_files(family);
        let tries = sets
            .iter()
            .flat_map(|set| files.iter().map(move |file| (set, file)));
        let made = tries.take(MOST_TRIES).filter_map(|(set, file)| {
            if self.is_java() {
                return self.suggestion(file, |source| put_back(set, source));
            }
            let own = Utf8Path::new(file).file_stem().unwrap_or_default();
            let names = Names {
                own,
                module_of: &|path| self.module_of(path, own),
            };
            self.suggestion(file, |source| suggest(set, source, names))
        });
        made.collect()
    }

    /// The files of the culprits, from the root of the work tree.
    fn culprit_files(&self, family: &Family) -> Vec<String> {
        let files = family.culprits.iter().map(|one| self.file_of(one));
        let mut files: Vec<String> = files.map(|file| self.inside_tree(file)).collect();
        files.dedup();
        files
    }

    /// A file of the framework's root, from the root of the work tree.
    fn inside_tree(&self, file: &str) -> String {
        // The framework's root may be above the work tree.
        let path = Utf8Path::new(&self.listed().root).join(file);
        let inside = path.strip_prefix(self.listing_place());
        inside.map_or_else(|_| file.to_owned(), ToString::to_string)
    }

    /// The user's own file: the copy in which the tests were listed may be gone.
    fn source(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.place(None).join(file)).ok()
    }

    /// A file of the work tree with an edit made, if there is one to make.
    fn suggestion(
        &self,
        file: &str,
        edit: impl FnOnce(&str) -> Option<Edit>,
    ) -> Option<Suggestion> {
        let source = self.source(file)?;
        let edit = edit(&source)?;
        Some(Suggestion {
            patched: apply(&source, &edit),
            fix: Fix {
                file: file.to_owned(),
                diff: to_diff(file, &source, &edit),
            },
        })
    }

    /// The module at the beginning of a path: one of the project's by its file, else the first name.
    fn module_of(&self, path: &str, own: &str) -> Option<String> {
        let dotted = path.split(['[', '(', ' ']).next()?;
        let names: Vec<&str> = dotted.split('.').collect();
        if names.first() == Some(&own) {
            return Some(own.to_owned());
        }
        for count in (1..names.len()).rev() {
            let relative = names[..count].join("/");
            let is_there = self.listed().imported_from.iter().any(|root| {
                let base = Utf8PathBuf::from(self.home_path(root)).join(&relative);
                base.with_extension("py").is_file() || base.join("__init__.py").is_file()
            });
            if is_there {
                return Some(names[..count].join("."));
            }
        }
        (names.len() > 1).then(|| names[0].to_owned())
    }

    /// The tests that pass after the culprits with this change: all in one VM, and where one of them
    /// does not pass there, it by itself.
    fn helped(
        &mut self,
        suggestion: &Suggestion,
        family: &Family,
        tests: &[TestId],
    ) -> Result<Vec<TestId>, Halt> {
        let mut helped = self.pass_with(suggestion, family, tests)?;
        if tests.len() > 1 {
            for test in tests {
                if !helped.contains(test) {
                    helped.extend(self.pass_with(
                        suggestion,
                        family,
                        std::slice::from_ref(test),
                    )?);
                }
            }
        }
        Ok(helped)
    }

    /// The tests that pass after the culprits in a copy of the project with this change; none if a culprit does not
    /// pass.
    fn pass_with(
        &mut self,
        suggestion: &Suggestion,
        family: &Family,
        tests: &[TestId],
    ) -> Result<Vec<TestId>, Halt> {
        let mut workspace = self.new_workspace()?;
        let Some(copy) = &mut workspace else {
            return Ok(Vec::new()); // The user's own files are not changed.
        };
        let place = copy.files().join(&suggestion.fix.file);
        std::fs::write(&place, &suggestion.patched).map_err(StartError::Scratch)?;
        let project = self.project_in(workspace.as_ref());
        if !project.rebuild(&place).map_err(StartError::Scratch)? {
            return Ok(Vec::new());
        }
        let all = family.with(tests);
        let Some(lane) = self.open_lane_in(workspace, &all, family.reach)? else {
            return Ok(Vec::new());
        };
        let mut lanes = [lane];
        let is_own = family.culprits == tests;
        let manner = Manner {
            is_apart: false,
            between: is_own.then_some(Between::Nothing),
            setting: Setting::Ordered,
            is_brief: false,
        };
        let before = if is_own { &[] } else { &family.culprits[..] };
        let trials = self.run_each(&mut lanes, &[[before, tests].concat()], manner)?;
        let [lane] = lanes;
        self.leave(Some(lane.vm))?;
        let trials: Vec<Trial> = trials.into_iter().flatten().collect();
        let times = if is_own { 2 } else { 1 };
        let passes = |test: &&TestId| {
            let own = trials.iter().filter(|trial| trial.test == **test);
            own.filter(|trial| trial.outcome.is_pass()).count() == times
        };
        let is_sound = before.iter().all(|culprit| passes(&culprit));
        Ok(tests
            .iter()
            .filter(|test| is_sound && passes(test))
            .cloned()
            .collect())
    }
}

/// Whether two causes name the same pieces.
fn is_same(one: Option<&Cause>, other: Option<&Cause>) -> bool {
    let keys = |cause: &Cause| -> Vec<String> {
        let keys = cause.shown.iter().map(|shown| shown.piece.key.clone());
        keys.collect()
    };
    let both = one.zip(other);
    both.is_some_and(|(one, other)| keys(one) == keys(other) && one.is_joint == other.is_joint)
}
