//! The answer of `unflake why` in the history: a label on the test.

use std::io::Write;

use anyhow::Context;
use unflake_core::why::category::Category;
use unflake_core::why::difference::Difference;
use unflake_history::engine::{self, Missing};
use unflake_history::run::{Label, TestName};

use crate::flags::why::WhyArgs;
use crate::settings::Settings;
use crate::verbs::why::words::sentence;
use crate::verbs::why::{Answer, Ranked};
use crate::view::explain::explain;
use unflake_history::dates;

/// The most findings that are kept.
const TOP: usize = 3;

/// Adds what was found to the history. An error of the history is shown, and has no other effect.
pub(super) fn keep(args: &WhyArgs, answer: &Answer) {
    if let Err(error) = try_keep(args, answer) {
        let error = error.context("the answer is not in the history");
        drop(writeln!(std::io::stderr(), "{}", explain(&error).0));
    }
}

fn try_keep(args: &WhyArgs, answer: &Answer) -> anyhow::Result<()> {
    let (Some(test), Some(value)) = (&answer.test, value(answer)) else {
        return Ok(());
    };
    let Some(path) = Settings::store_of(&args.project, &args.history)? else {
        return Ok(());
    };
    let mut store = engine::open(path.as_std_path(), Missing::Make)?;
    let label = Label {
        time: dates::now(),
        test: TestName {
            name: test.clone(),
            copy: 0,
            is_own: true,
        },
        run: None,
        kind: "cause".to_owned(),
        value,
        author: "unflake why".to_owned(),
    };
    store.append_labels(&[label]).context("cannot add a label")
}

/// The first findings, each with its category, place and sentence; `None` if there is none.
fn value(answer: &Answer) -> Option<String> {
    let failures = answer.failures.first()?;
    let Ranked::Ours { shown, .. } = &failures.ranked else {
        return None;
    };
    let told = |one: &Difference| {
        let category = one.category.map_or("unknown", Category::label);
        format!("{category}: {}: {}", one.spot.site, sentence(one))
    };
    let told: Vec<String> = shown.iter().take(TOP).map(told).collect();
    (!told.is_empty()).then(|| told.join("\n"))
}
