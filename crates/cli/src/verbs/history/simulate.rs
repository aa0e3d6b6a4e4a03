//! `unflake simulate`: a made-up history whose truth is known, as a table or in a store.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use jiff::Timestamp;
use serde_json::json;
use unflake_core::quantify::simulation::{Distribution, Plan, SimulatedRun, Simulation};
use unflake_history::batch::{Batch, Packer};
use unflake_history::dates;
use unflake_history::engine::{self, Missing};
use unflake_history::run::{Ended, More, Provenance, Row};
use unflake_history::store::digest_of;
use unflake_history::store::source::{Appended, Refused, Source};

use super::table;
use crate::Exit;
use crate::flags::history::{DistributionArg, SimulateArgs};
use crate::history::place;
use crate::view::explain::Trouble;
use crate::view::stdout::{print, unless_left};

pub(crate) fn simulate(args: &SimulateArgs) -> anyhow::Result<Exit> {
    let plan = to_plan(args)?;
    let simulation = Simulation::new(plan);
    if let Some(file) = &args.truth {
        let text = write_truth(&simulation, plan);
        std::fs::write(file, text).with_context(|| format!("cannot write {file}"))?;
    }
    match &args.table {
        Some(file) if file == "-" => {
            let written = write_table(simulation, std::io::stdout().lock());
            unless_left(written.map(drop))?;
        }
        Some(file) => {
            let writer = File::create(file).with_context(|| format!("cannot write {file}"))?;
            let runs = write_table(simulation, writer)?;
            print(&format!("{} runs in {file}", table::count(runs)))?;
        }
        None => {
            let folder = place::here()?;
            let store = args.store.as_deref().expect("there is a table or a store");
            let path = folder.join(store);
            let runs = fill(simulation, plan, path.as_std_path())?;
            print(&match runs {
                Some(runs) => format!("{} runs in {path}", table::count(runs)),
                None => format!("they are in {path} already"),
            })?;
        }
    }
    Ok(Exit::Clean)
}

fn to_plan(args: &SimulateArgs) -> anyhow::Result<Plan> {
    Ok(Plan {
        tests: args.tests,
        runs: args.runs,
        days: args.days,
        first_day: dates::parse(&args.from).ok_or_else(|| Trouble::Date {
            text: args.from.clone(),
        })?,
        releases: args.releases,
        rates: match args.rates {
            DistributionArg::Ericsson => Distribution::Ericsson,
            DistributionArg::Google => Distribution::Google,
        },
        bursty: args.bursty,
        clustered: args.clustered,
        faults: args.faults,
        seed: args.seed,
    })
}

/// What a simulated test is called.
fn name(test: u32) -> String {
    format!(
        "suite_{:02}/test_{:03}.py::test_{test:05}",
        test % 40,
        test / 40
    )
}

fn write_table(mut simulation: Simulation, writer: impl Write) -> anyhow::Result<u64> {
    let failed = "cannot write the table";
    let mut writer = BufWriter::with_capacity(1 << 20, writer);
    let truth = simulation.truth();
    let names: Vec<String> = (0..)
        .zip(&truth.tests)
        .map(|(test, _)| name(test))
        .collect();
    let releases: Vec<String> = truth.releases.iter().map(|one| one.name.clone()).collect();
    writeln!(writer, "test,time,verdict,release,bug,duration").context(failed)?;
    let mut count = 0;
    while let Some(day) = simulation.next_day() {
        for run in day {
            let time =
                Timestamp::from_millisecond(run.time).context("a time beyond all calendars")?;
            let verdict = if run.failed { "failed" } else { "passed" };
            let bug = run.bug.map_or_else(String::new, |bug| format!("TR{bug}"));
            let (test, release) = (&names[run.test as usize], &releases[run.release as usize]);
            let seconds = f64::from(run.milliseconds) / 1000.0;
            writeln!(writer, "{test},{time},{verdict},{release},{bug},{seconds}")
                .context(failed)?;
            count += 1;
        }
    }
    writer.flush().context(failed)?;
    Ok(count)
}

/// Puts the runs into a store; `None` if they are there already.
fn fill(simulation: Simulation, plan: Plan, path: &Path) -> anyhow::Result<Option<u64>> {
    let mut store = engine::open(path, Missing::Make)?;
    let mut source = Simulated {
        simulation,
        plan,
        packed: Vec::new(),
        is_over: false,
    };
    match store.append(&mut source)? {
        Appended::Added { runs } => Ok(Some(runs)),
        Appended::Known | Appended::Refused => Ok(None),
    }
}

struct Simulated {
    simulation: Simulation,
    plan: Plan,
    packed: Vec<Batch>,
    is_over: bool,
}

impl Source for Simulated {
    fn next_batch(&mut self) -> Option<Batch> {
        while self.packed.is_empty() && !self.is_over {
            let day = self.simulation.next_day();
            self.is_over = day.is_none();
            let truth = self.simulation.truth();
            let releases: Vec<Provenance> = truth
                .releases
                .iter()
                .map(|release| Provenance {
                    release: release.name.clone(),
                    ..Provenance::default()
                })
                .collect();
            let mut batches = Vec::new();
            let mut packer = Packer::new(|batch| {
                batches.push(batch);
                Ok::<(), ()>(())
            });
            for run in day.into_iter().flatten() {
                let test = packer.test(&name(run.test), 0, false);
                let provenance = packer.provenance(&releases[run.release as usize]);
                // The packer only remembers: it cannot fail.
                let _ = packer.push(to_row(run, test, provenance));
            }
            let _ = packer.flush();
            batches.reverse();
            self.packed = batches;
        }
        self.packed.pop()
    }

    fn digest(&mut self) -> Result<[u8; 32], Refused> {
        // The plan decides everything.
        Ok(digest_of(canonical(self.plan).as_bytes()))
    }

    fn name(&self) -> String {
        format!("simulation with seed {}", self.plan.seed)
    }
}

/// A plan as the bytes that its digest is made of. They stand in stores, so they never change.
fn canonical(plan: Plan) -> String {
    let Plan {
        tests,
        runs,
        days,
        first_day,
        releases,
        rates,
        bursty,
        clustered,
        faults,
        seed,
    } = plan;
    let rates = match rates {
        Distribution::Ericsson => "Ericsson",
        Distribution::Google => "Google",
    };
    format!(
        "Plan {{ tests: {tests}, runs: {runs}, days: {days}, first_day: {first_day}, releases: {releases}, \
         rates: {rates}, bursty: {bursty:?}, clustered: {clustered:?}, faults: {faults}, seed: {seed} }}"
    )
}

fn to_row(run: SimulatedRun, test: u32, provenance: u32) -> Row {
    let more = run.bug.map(|bug| {
        Box::new(More {
            bug: Some(format!("TR{bug}")),
            ..More::default()
        })
    });
    Row {
        test,
        provenance,
        time: run.time,
        ended: if run.failed {
            Ended::FAILED
        } else {
            Ended::PASSED
        },
        attempt: 1,
        duration: Some(i64::from(run.milliseconds) * 1000),
        more,
    }
}

fn write_truth(simulation: &Simulation, plan: Plan) -> String {
    let truth = simulation.truth();
    let date = |day: i32| dates::to_text(plan.first_day + day);
    let tests = (0..).zip(&truth.tests).map(|(number, test)| {
        json!({
            "test": name(number), "rate": test.rate, "bursty": test.is_bursty, "cluster": test.cluster,
        })
    });
    let faults = truth.faults.iter().map(|fault| {
        json!({
            "release": truth.releases[fault.release as usize].name, "from": date(fault.first_day),
            "to": date(fault.last_day), "probability": fault.probability,
            "tests": fault.tests.iter().map(|test| name(*test)).collect::<Vec<_>>(),
        })
    });
    let releases = truth.releases.iter().map(|release| {
        json!({
            "release": release.name, "from": date(release.first_day), "to": date(release.last_day),
            "cycle_days": release.cycle, "tests": release.tests.len(),
        })
    });
    let all = json!({
        "schema": "unflake.truth/1", "seed": plan.seed, "tests": tests.collect::<Vec<_>>(),
        "releases": releases.collect::<Vec<_>>(), "faults": faults.collect::<Vec<_>>(),
    });
    format!("{all:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_the_bytes_that_the_first_stores_were_written_with() {
        assert_eq!(
            canonical(Plan::ERICSSON),
            "Plan { tests: 10383, runs: 9900000, days: 895, first_day: 17000, releases: 4, rates: Ericsson, \
             bursty: 0.3, clustered: 0.75, faults: 60, seed: 1 }"
        );
        let other = Plan {
            rates: Distribution::Google,
            bursty: 0.0,
            ..Plan::ERICSSON
        };
        assert!(canonical(other).contains("rates: Google, bursty: 0.0, clustered"));
    }
}
