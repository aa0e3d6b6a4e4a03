//! The JSON report. `docs/json.md` describes the schema; a change that breaks readers raises it.

mod order;
mod whose;

use std::time::Duration;

use serde::Serialize;
use unflake_core::cost::{Costs, Spent};
use unflake_core::event::Ending;
use unflake_core::quarantine::Quarantined;
use unflake_core::trial::Trial;
use unflake_core::verdict::Finding;
use unflake_history::dates;

use self::order::{JsonCause, JsonLatent, JsonOrder, to_json_cause, to_json_latent, to_json_order};
use self::whose::{JsonWhose, to_json_whose};
use super::{Counts, Report, describe_note};

/// The schema's name and version.
const SCHEMA: &str = "unflake.run/2";

/// The report as one JSON object on several lines.
pub(crate) fn write(report: &Report, exit_code: u8) -> String {
    let value = to_json(report, exit_code);
    serde_json::to_string_pretty(&value).expect("the report holds only text and numbers")
}

#[derive(Serialize)]
struct JsonReport<'a> {
    schema: &'static str,
    unflake: &'static str,
    framework: Option<&'a str>,
    language: Option<&'a str>,
    root: Option<&'a str>,
    ended: &'static str,
    reason: Option<&'a str>,
    exit_code: u8,
    seconds: f64,
    jobs: usize,
    replay: &'a [String],
    hash_seed: Option<u32>,
    summary: JsonCounts,
    too_many_failures: bool,
    findings: Vec<JsonFinding<'a>>,
    collection_errors: Vec<JsonError<'a>>,
    session_errors: &'a [String],
    unmatched: Vec<JsonUnmatched<'a>>,
    tests: Vec<JsonTest<'a>>,
    vms: Vec<JsonVm<'a>>,
    costs: JsonCosts,
    notes: Vec<String>,
    latent: Vec<JsonLatent<'a>>,
}

#[derive(Serialize)]
struct JsonCounts {
    tests: usize,
    passed: usize,
    skipped: usize,
    xfailed: usize,
    xpassed: usize,
    not_run: usize,
    flaky: usize,
    nio: usize,
    nio_after_others: usize,
    victim: usize,
    non_deterministic: usize,
    brittle: usize,
    yours: usize,
    not_yours: usize,
    not_known: usize,
    broken: usize,
    unclear: usize,
    unexamined: usize,
    quarantined: usize,
    collection_errors: usize,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    id: &'a str,
    copy: u32,
    file: Option<&'a str>,
    line: Option<u32>,
    verdict: &'static str,
    kind: Option<&'static str>,
    meaning: &'static str,
    quarantine: Option<JsonQuarantine<'a>>,
    repeat: String,
    whose: Option<JsonWhose<'a>>,
    left_behind: &'a [String],
    latent: bool,
    order: Option<JsonOrder<'a>>,
    cause: Option<JsonCause<'a>>,
    recipe: Option<[String; 2]>,
    break_even_fork: Option<f64>,
    break_even_exec: Option<f64>,
    attempts: Vec<JsonTrial<'a>>,
}

/// Why a test may fail.
#[derive(Serialize)]
struct JsonQuarantine<'a> {
    reason: &'a str,
    owner: &'a str,
    until: String,
}

#[derive(Serialize)]
struct JsonTrial<'a> {
    rung: &'static str,
    outcome: &'static str,
    seconds: f64,
    cost_seconds: f64,
    vm: u32,
    birth: &'static str,
    before: usize,
    watched: bool,
    message: &'a str,
    text: &'a str,
    output: &'a str,
}

#[derive(Serialize)]
struct JsonError<'a> {
    place: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct JsonUnmatched<'a> {
    case: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct JsonTest<'a> {
    id: &'a str,
    copy: u32,
    file: &'a str,
    line: u32,
    outcome: &'static str,
    seconds: Option<f64>,
    vm: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonVm<'a> {
    vm: u32,
    birth: &'static str,
    order: Vec<&'a str>,
}

#[derive(Serialize)]
struct JsonCosts {
    immediate: JsonSpent,
    end: JsonSpent,
    fork: JsonSpent,
    exec: JsonSpent,
    break_even_fork: Option<f64>,
    break_even_exec: Option<f64>,
}

#[derive(Serialize)]
struct JsonSpent {
    trials: u32,
    seconds_each: Option<f64>,
}

fn to_json(report: &Report, exit_code: u8) -> JsonReport<'_> {
    let listing = report.listing.as_ref();
    let (ended, reason) = match &report.ending {
        Some(Ending::Completed) => ("completed", None),
        Some(Ending::Stopped { reason }) => ("stopped", Some(reason.as_str())),
        Some(Ending::CutShort { reason }) => ("cut-short", Some(reason.as_str())),
        Some(Ending::Quit { reason, .. }) => ("quit", Some(reason.as_str())),
        Some(Ending::OutOfTime) => ("out-of-time", None),
        Some(Ending::Interrupted) | None => ("interrupted", None),
    };
    let errors = report.collection_errors.iter();
    JsonReport {
        schema: SCHEMA,
        unflake: env!("CARGO_PKG_VERSION"),
        framework: listing.map(|listing| listing.framework.as_str()),
        language: listing.map(|listing| listing.language.as_str()),
        root: listing.map(|listing| listing.root.as_str()),
        ended,
        reason,
        exit_code,
        seconds: round(report.elapsed),
        jobs: listing.map_or(0, |listing| listing.jobs),
        replay: listing.map_or(&[], |listing| &listing.replay),
        hash_seed: listing.and_then(|listing| listing.hash_seed),
        summary: to_json_counts(report.counts()),
        too_many_failures: report.too_many_failures,
        findings: report
            .findings
            .iter()
            .map(|finding| to_json_finding(report, finding))
            .collect(),
        collection_errors: errors
            .map(|error| JsonError {
                place: &error.place,
                text: &error.text,
            })
            .collect(),
        session_errors: &report.session_errors,
        unmatched: report
            .unmatched
            .iter()
            .map(|(case, why)| JsonUnmatched { case, why })
            .collect(),
        tests: to_json_tests(report),
        vms: to_json_vms(report),
        costs: to_json_costs(report.costs),
        notes: report.notes.iter().map(describe_note).collect(),
        latent: report.latent.iter().map(to_json_latent).collect(),
    }
}

fn to_json_counts(counts: Counts) -> JsonCounts {
    JsonCounts {
        tests: counts.tests,
        passed: counts.passed,
        skipped: counts.skipped,
        xfailed: counts.xfailed,
        xpassed: counts.xpassed,
        not_run: counts.not_run,
        flaky: counts.flaky,
        nio: counts.nio,
        nio_after_others: counts.nio_after_others,
        victim: counts.victim,
        non_deterministic: counts.non_deterministic,
        brittle: counts.brittle,
        yours: counts.yours,
        not_yours: counts.not_yours,
        not_known: counts.not_known,
        broken: counts.broken,
        unclear: counts.unclear,
        unexamined: counts.unexamined,
        quarantined: counts.quarantined,
        collection_errors: counts.collection_errors,
    }
}

fn to_json_finding<'a>(report: &'a Report, finding: &'a Finding) -> JsonFinding<'a> {
    let test = report.test(&finding.test);
    let costs = Costs::of(&finding.trials);
    JsonFinding {
        id: finding.test.name(),
        copy: finding.test.copy(),
        file: test.map(|test| test.file.as_str()),
        line: test.map(|test| test.line),
        verdict: finding.verdict.label(),
        kind: finding.verdict.kind(),
        meaning: finding.verdict.meaning(),
        quarantine: report.quarantine.of(&finding.test).map(to_json_quarantine),
        repeat: report.invocation.repeat(report, finding),
        whose: to_json_whose(finding),
        left_behind: &finding.left_behind,
        latent: finding.is_latent,
        order: finding.dependence.as_deref().map(to_json_order),
        cause: finding.cause.as_deref().map(to_json_cause),
        recipe: report
            .invocation
            .recipe(report, finding)
            .or_else(|| report.invocation.order_recipe(report, finding)),
        break_even_fork: costs.break_even(costs.fork),
        break_even_exec: costs.break_even(costs.exec),
        attempts: finding.trials.iter().map(to_json_trial).collect(),
    }
}

fn to_json_quarantine(quarantined: &Quarantined) -> JsonQuarantine<'_> {
    JsonQuarantine {
        reason: &quarantined.reason,
        owner: &quarantined.owner,
        until: dates::to_text(quarantined.until),
    }
}

fn to_json_trial(trial: &Trial) -> JsonTrial<'_> {
    JsonTrial {
        rung: trial.rung.label(),
        outcome: trial.outcome.label(),
        seconds: round(trial.duration),
        cost_seconds: round(trial.cost),
        vm: trial.vm.0,
        birth: trial.birth.label(),
        before: trial.before,
        watched: trial.is_watched,
        message: &trial.account.message,
        text: &trial.account.text,
        output: &trial.account.output,
    }
}

fn to_json_tests(report: &Report) -> Vec<JsonTest<'_>> {
    let tests = report.tests().iter().map(|test| {
        let run = report.outcomes.get(&test.id);
        JsonTest {
            id: test.id.name(),
            copy: test.id.copy(),
            file: &test.file,
            line: test.line,
            outcome: run.map_or("not-run", |run| run.outcome.label()),
            seconds: run.map(|run| round(run.duration)),
            vm: run.map(|run| run.vm.0),
            message: run
                .map(|run| run.message.as_str())
                .filter(|message| !message.is_empty()),
        }
    });
    tests.collect()
}

fn to_json_vms(report: &Report) -> Vec<JsonVm<'_>> {
    let vms = report.vms.iter().map(|(vm, log)| JsonVm {
        vm: vm.0,
        birth: log.birth.label(),
        order: log
            .order
            .iter()
            .map(unflake_core::test::TestId::name)
            .collect(),
    });
    vms.collect()
}

fn to_json_costs(costs: Costs) -> JsonCosts {
    let spent = |spent: Spent| JsonSpent {
        trials: spent.trials,
        seconds_each: spent.each(),
    };
    JsonCosts {
        immediate: spent(costs.immediate),
        end: spent(costs.end),
        fork: spent(costs.fork),
        exec: spent(costs.exec),
        break_even_fork: costs.break_even(costs.fork),
        break_even_exec: costs.break_even(costs.exec),
    }
}

/// Seconds to the microsecond: more digits are noise.
fn round(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use crate::view::report::sample;

    #[test]
    fn the_whole_report_reads_well() {
        insta::assert_snapshot!(super::write(&sample::report(), 1));
    }
}
