//! Prints, for each test file of the pytest project in the current folder, whether what it uses is
//! disjoint from what changed since a revision: `survey PYTHON BASE [PYTEST ARGS…]`.
//!
//! One JSON object a line; `bench/applicability.py` reads them.

#![expect(clippy::print_stdout, reason = "it is a program that prints")]

use std::error::Error;
use std::sync::mpsc::channel;

use camino::Utf8PathBuf;
use serde_json::json;
use unflake_core::intersect::Intersection;
use unflake_core::plan::Plan;
use unflake_core::rules::Rules;
use unflake_driver::framework::project::Project;
use unflake_driver::framework::pytest;
use unflake_driver::framework::pytest::hash_seed::HashSeed;
use unflake_driver::git::difference::{Against, CheckBase};
use unflake_driver::lab::session::{Session, Wish};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(python), Some(base)) = (words.next(), words.next()) else {
        return Err("usage: survey PYTHON BASE [PYTEST ARGS…]".into());
    };
    let wish = Wish {
        project: Project::Pytest(pytest::Project {
            folder: Utf8PathBuf::try_from(std::env::current_dir()?)?,
            python: Utf8PathBuf::from(python),
            args: words.collect(),
            import_first: Vec::new(),
            temporary: None,
            hash_seed: HashSeed::draw(),
        }),
        plan: Plan::default(),
        jobs: Some(1),
        fresh_by: None,
        against: Some(Against {
            budget: None,
            setup: None,
            base: Some(base),
            rules: Rules::default(),
            check_base: CheckBase::Never,
            is_required: true,
            memory: None,
            tested: None,
            reports: Vec::new(),
            run_began: None,
            readers: None,
        }),
        vms_before: 0,
    };
    let (sender, events) = channel();
    let reader = std::thread::spawn(move || events.iter().count());
    for found in Session::new(wish, sender)?.survey()? {
        println!(
            "{}",
            json!({
                "file": found.file,
                "tests": found.tests,
                "block": describe(&found.by_block),
                "whole": describe(&found.by_file),
            })
        );
    }
    drop(reader.join());
    Ok(())
}

fn describe(intersection: &Intersection) -> serde_json::Value {
    let touches = intersection.touches.iter();
    let touches = touches.map(|touch| format!("{} {}", touch.how.label(), touch.path));
    let unknowns = intersection
        .unknowns
        .iter()
        .map(|unknown| format!("{unknown:?}"));
    json!({
        "disjoint": intersection.is_disjoint(),
        "touches": touches.collect::<Vec<_>>(),
        "unknowns": unknowns.collect::<Vec<_>>(),
    })
}
