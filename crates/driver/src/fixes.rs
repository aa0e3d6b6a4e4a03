//! Suggested changes of test files, each seen to help in a copy before it is shown.

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::fix::{Fix, Names, suggest};
use unflake_core::insertion::{Insertion, apply, to_diff};
use unflake_core::nio::Setting;
use unflake_core::state::{Cause, Piece};
use unflake_core::test::TestId;
use unflake_core::trial::Trial;

use crate::lane::{Lane, Manner};
use crate::protocol::Between;
use crate::session::{Halt, Session};
use crate::start_error::StartError;

/// So many suggestions are tried for one finding.
const MOST_TRIES: usize = 3;

impl Session {
    /// A change of a culprit's file with which the test passes after the culprits; `None` if none is
    /// known. Where the test is its own culprit, it must pass when it is run twice.
    pub(crate) fn find_fix(
        &mut self,
        culprits: &[TestId],
        test: &TestId,
        cause: &Cause,
    ) -> Result<Option<Fix>, Halt> {
        let pieces: Vec<&Piece> = cause.shown.iter().map(|shown| &shown.piece).collect();
        let sets: Vec<Vec<&Piece>> = if cause.is_joint {
            vec![pieces]
        } else {
            pieces.into_iter().map(|piece| vec![piece]).collect()
        };
        let mut files: Vec<String> = culprits
            .iter()
            .map(|one| self.file_of(one).to_owned())
            .collect();
        files.dedup();
        let tries = sets
            .iter()
            .flat_map(|set| files.iter().map(move |file| (set, file)));
        let tries: Vec<(&Vec<&Piece>, &String)> = tries.take(MOST_TRIES).collect();
        for (set, file) in tries {
            // The copy in which the tests were listed may be gone.
            let place = Utf8PathBuf::from(self.home_path(&self.listed().root)).join(file);
            let Ok(source) = std::fs::read_to_string(&place) else {
                continue;
            };
            let own = Utf8Path::new(file)
                .with_extension("")
                .as_str()
                .replace('/', ".");
            let own = own.rsplit('.').next().unwrap_or_default().to_owned();
            let names = Names {
                own: &own,
                module_of: &|path| self.module_of(path, &own),
            };
            let Some(insertion) = suggest(set, &source, names) else {
                continue;
            };
            if self.helps(file, &apply(&source, &insertion), culprits, test)? {
                return Ok(Some(self.to_fix(file, &source, &insertion)));
            }
        }
        Ok(None)
    }

    fn to_fix(&self, file: &str, source: &str, insertion: &Insertion) -> Fix {
        // The framework's root need not be that of the work tree.
        let inside = Utf8Path::new(&self.listed().root).strip_prefix(self.listing_place());
        let path = inside.map_or_else(|_| Utf8PathBuf::from(file), |inside| inside.join(file));
        Fix {
            file: path.to_string(),
            diff: to_diff(path.as_str(), source, insertion),
        }
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

    /// Whether all is well in a copy of the project with another text of one file.
    fn helps(
        &mut self,
        file: &str,
        patched: &str,
        culprits: &[TestId],
        test: &TestId,
    ) -> Result<bool, Halt> {
        let mut workspace = self.new_workspace()?;
        let Some(copy) = &mut workspace else {
            return Ok(false); // The user's own files are not changed.
        };
        let root = Utf8Path::new(&self.listed().root);
        let inside = root.strip_prefix(self.listing_place()).unwrap_or(root);
        let place = copy.files().join(inside).join(file);
        std::fs::write(place, patched).map_err(StartError::Scratch)?;
        let vm = self.start_in(workspace.as_ref(), &[])?;
        if self.await_test_of(test, None, vm)?.is_some() {
            self.leave(Some(vm))?;
            return Ok(false);
        }
        let mut lanes = [Lane::new(vm, workspace, None)];
        let is_own = culprits == std::slice::from_ref(test);
        let manner = Manner {
            is_apart: false,
            between: is_own.then_some(Between::Nothing),
            setting: Setting::Ordered,
        };
        let order = if is_own {
            vec![test.clone()]
        } else {
            [culprits, std::slice::from_ref(test)].concat()
        };
        let wanted = if is_own { 2 } else { order.len() };
        let trials = self.run_each(&mut lanes, &[order], manner)?;
        let trials: Vec<Trial> = trials.into_iter().flatten().collect();
        let [lane] = lanes;
        self.leave(Some(lane.vm))?;
        Ok(trials.len() == wanted && trials.iter().all(|trial| trial.outcome.is_pass()))
    }
}
