//! The hunt for NIO tests in a session: which tests are hunted, and the lab in which that is done.
//!
//! What is run and what it means is decided in `unflake_core::nio`.

use camino::Utf8PathBuf;
use unflake_core::change::ChangeKind;
use unflake_core::drive::{Lab, drive};
use unflake_core::event::Ending;
use unflake_core::nio::hunt::{Hunt, HuntPlan, Mode};
use unflake_core::test::{Test, TestId};

use crate::lab::lane_lab::LaneLab;
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Session};

/// What the user wants of a hunt.
#[derive(Clone, Copy, Debug)]
pub struct HuntRequest {
    /// In which VMs tests are run twice.
    pub mode: Mode,
    /// Whether only tests are run that are new or modified since the base.
    pub only_changed: bool,
}

/// Runs every test twice and names those that did not pass twice.
pub fn hunt(mut session: Session, request: HuntRequest) -> Result<(), RunError> {
    let checked = session.check_against();
    let ending = checked.and_then(|()| hunt_in(&mut session, request));
    session.close(ending)
}

fn hunt_in(session: &mut Session, request: HuntRequest) -> Result<Ending, Halt> {
    session.move_in();
    let first = session.open_lane()?;
    let mut tests = session.tests.clone();
    if request.only_changed {
        tests.retain(|test| is_changed(session, test));
    }
    session.announce(tests.clone());
    if session.listed().blocked || tests.is_empty() {
        session.finish(first.vm)?;
        return Ok(Ending::Completed);
    }
    session.learn_chance()?;
    let plan = plan(session, request.mode, &tests);
    let events = session.events.clone();
    let mut lab = LaneLab::new(session, first);
    let mut hunt = Hunt::new(plan, lab.can());
    // Readers go away only when the program ends; then there is nobody left to tell.
    let ending = drive(&mut hunt, &mut lab, &mut |event| drop(events.send(event)));
    let ending = ending.map_err(Halt::Error)?;
    if ending == Ending::Completed {
        lab.close()?;
    }
    Ok(ending)
}

fn plan(session: &mut Session, mode: Mode, tests: &[Test]) -> HuntPlan {
    let id = |test: &Test| test.id.clone();
    let mut changed = tests
        .iter()
        .filter(|_| mode == Mode::Auto)
        .cloned()
        .collect::<Vec<_>>();
    changed.retain(|test| is_changed(session, test));
    let (_, is_by_class) = session.wish.project.differences();
    let listed = || -> Vec<TestId> { session.tests.iter().map(id).collect() };
    HuntPlan {
        mode,
        tests: tests.iter().map(id).collect(),
        changed: changed.iter().map(id).collect(),
        classes: is_by_class.then(listed),
    }
}

/// Whether a test is new or modified since the base.
fn is_changed(session: &mut Session, test: &Test) -> bool {
    let Some(difference) = session.difference() else {
        return false;
    };
    // The framework names files from its own root, which need not be where it was called.
    let root = Utf8PathBuf::from(session.home_path(&session.listed().root));
    let root = root.canonicalize_utf8().unwrap_or(root);
    let Ok(inside) = root.strip_prefix(&difference.root) else {
        return false;
    };
    let path = inside.join(&test.file);
    let mut changes = difference.changes.iter();
    let Some(change) = changes.find(|change| change.file.path == path) else {
        return false;
    };
    match (&change.source, change.file.kind) {
        (_, ChangeKind::Added) | (None, _) => true,
        (Some(source), _) => source.functions.iter().any(|function| {
            let is_here =
                function.lines.contains(test.line) || function.starts.contains(&test.line);
            function.is_changed && is_here
        }),
    }
}
