//! What is shown while a run goes on: a bar on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use console::style;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use unflake_core::event::{Event, Stage};
use unflake_core::nio::Setting;
use unflake_core::order::{Culprit, Role};
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial};
use unflake_core::verdict::Finding;

use crate::view::printable::printable;
use crate::view::report::{plural, seconds};

/// The shortest time between two lines of progress, where there is no bar.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// The live view of a run, on standard error.
pub(crate) struct Console {
    view: View,
    total: usize,
    done: usize,
    failed: usize,
    to_judge: usize,
    suite_ended: bool,
    /// Whether tests are run two times in a row.
    runs_pairs: bool,
    born: Instant,
    started: Instant,
    last_told: Instant,
}

enum View {
    Bar(ProgressBar),
    Plain,
}

impl Console {
    pub(crate) fn new() -> Self {
        let view = if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg}").expect("a fixed template"),
            );
            bar.enable_steady_tick(Duration::from_millis(120));
            bar.set_message("collecting tests");
            View::Bar(bar)
        } else {
            View::Plain
        };
        Self {
            view,
            total: 0,
            done: 0,
            failed: 0,
            to_judge: 0,
            suite_ended: false,
            runs_pairs: false,
            born: Instant::now(),
            started: Instant::now(),
            last_told: Instant::now(),
        }
    }

    /// Shows one event.
    pub(crate) fn show(&mut self, event: &Event) {
        match event {
            Event::Listed(listing) => {
                self.total = listing.tests.len();
                self.started = Instant::now();
                let vms = if listing.jobs > 1 {
                    format!(" in {} processes", listing.jobs)
                } else {
                    String::new()
                };
                let tests = plural(self.total, "test", "tests");
                self.line(&format!(
                    "{tests}{vms} ({}, {})",
                    listing.framework, listing.language
                ));
                self.open_bar(self.total, "tests");
            }
            Event::TrialStarted { test, rung, .. } => {
                if let View::Bar(bar) = &self.view {
                    let label = if *rung == Rung::Suite {
                        String::new()
                    } else {
                        format!("{}: ", rung.label())
                    };
                    if !matches!(rung, Rung::Once(Setting::Alone | Setting::Ordered)) {
                        bar.set_message(format!("{label}{}", printable(test.name())));
                    }
                }
            }
            Event::TrialEnded(trial) => self.show_trial(trial),
            Event::SuiteEnded {
                elapsed,
                failures,
                too_many_failures,
            } => {
                self.suite_ended = true;
                self.end_of_suite(*elapsed, *failures, *too_many_failures);
            }
            Event::Searching { stage, done, total } => self.show_stage(stage, *done, *total),
            Event::Blaming { test, done, total } => self.show_blaming(test, *done, *total),
            Event::Detected {
                suspects,
                orders,
                elapsed,
            } => self.end_of_detection(*suspects, *orders, *elapsed),
            Event::CulpritFound {
                test,
                role,
                culprit,
            } => self.show_culprit(test, *role, culprit),
            Event::Judged(finding) => self.show_verdict(finding),
            Event::Ended(_) => self.close(),
            // These stand in the report.
            Event::VmStarted { .. }
            | Event::Latent(_)
            | Event::Noted(_)
            | Event::Unmatched { .. }
            | Event::CollectionFailed(_)
            | Event::SessionFailed { .. }
            | Event::Prepared { .. } => {}
        }
    }

    /// Takes the bar away.
    pub(crate) fn close(&self) {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }

    fn show_trial(&mut self, trial: &Trial) {
        let name = printable(trial.test.name());
        let time = seconds(trial.duration);
        if let Rung::Once(_) | Rung::Again(_) = trial.rung {
            self.show_pair(trial);
        } else if matches!(trial.rung, Rung::Suite | Rung::Report) {
            self.done += 1;
            if trial.outcome.is_failure() {
                self.failed += 1;
                let label = trial.outcome.label().to_uppercase();
                let label = style(format!("{label:>9}")).red().for_stderr();
                self.line(&format!("{label} {name} [{time}]"));
            }
            self.advance();
        } else {
            let outcome = trial.outcome.label();
            let outcome = format!("{outcome:>9}");
            let outcome = if trial.outcome.is_pass() {
                style(outcome).green()
            } else {
                style(outcome).red()
            };
            let rung = trial.rung.label();
            self.line(&format!(
                "{} {name} [{time}] {rung} rerun",
                outcome.for_stderr()
            ));
        }
    }

    /// Half of a test that is run twice: its outcome is shown where it is not a pass.
    fn show_pair(&mut self, trial: &Trial) {
        self.runs_pairs = true;
        if self.suite_ended || trial.rung == Rung::Once(Setting::Alone) {
            return;
        }
        let is_second = matches!(trial.rung, Rung::Again(_));
        if trial.outcome.is_failure() {
            self.failed += 1;
            let label = trial.outcome.label().to_uppercase();
            let label = style(format!("{label:>9}")).red().for_stderr();
            let name = printable(trial.test.name());
            let when = if is_second { " the second time" } else { "" };
            let time = seconds(trial.duration);
            self.line(&format!("{label} {name} [{time}]{when}"));
        }
        if is_second {
            self.done += 1;
            self.advance();
        }
    }

    fn advance(&mut self) {
        match &self.view {
            View::Bar(bar) => bar.set_position(self.done as u64),
            View::Plain if self.last_told.elapsed() >= PLAIN_INTERVAL => {
                self.last_told = Instant::now();
                let left = estimate(self.started.elapsed(), self.done, self.total);
                let (done, total, failed) = (self.done, self.total, self.failed);
                self.line(&format!(
                    "{done} of {total} tests, {failed} failed, about {} left",
                    seconds(left)
                ));
            }
            View::Plain => {}
        }
    }

    fn end_of_suite(&mut self, elapsed: Duration, failures: usize, too_many: bool) {
        if failures == 0 {
            return;
        }
        self.to_judge = failures;
        self.done = 0;
        let what = if too_many {
            "too many to run again: the change is probably broken"
        } else {
            "examining them"
        };
        let tests = plural(failures, "test", "tests");
        if self.runs_pairs {
            let time = seconds(elapsed);
            self.line(&format!(
                "{tests} did not pass twice ({time}); running {} alone",
                if failures == 1 { "it" } else { "them" }
            ));
            return self.open_bar(failures, "verdicts");
        }
        let place = if elapsed.is_zero() {
            "the report".to_owned()
        } else {
            seconds(elapsed)
        };
        self.line(&format!("{tests} failed in {place}; {what}"));
        self.open_bar(failures, "verdicts");
    }

    fn show_blaming(&mut self, test: &TestId, done: usize, total: usize) {
        let what = format!("whose failure is {}?", printable(test.name()));
        match &self.view {
            View::Bar(bar) => bar.set_message(what),
            View::Plain if done == 0 || self.last_told.elapsed() >= PLAIN_INTERVAL => {
                self.last_told = Instant::now();
                self.line(&format!("{what} ({} of {total})", done + 1));
            }
            View::Plain => {}
        }
    }

    fn show_stage(&mut self, stage: &Stage, done: usize, total: usize) {
        let name = |test: &TestId| printable(test.name());
        let what = match stage {
            Stage::Alone => "each test alone".to_owned(),
            Stage::Orders => "the suite in several orders".to_owned(),
            Stage::Setters(test) => format!("what {} needs", name(test)),
            Stage::Culprits(test) => format!("the culprits of {}", name(test)),
            Stage::Others(tests) => {
                let names: Vec<String> = tests.iter().map(name).collect();
                format!("what else is changed by {}", names.join(" and "))
            }
            Stage::Leftovers => "what each test leaves changed".to_owned(),
            Stage::Showing(test) => format!("showing {} in new processes", name(test)),
        };
        match &self.view {
            View::Bar(bar) => {
                bar.set_message(what);
                bar.update(|state| {
                    state.set_len(total as u64);
                    state.set_pos(done as u64);
                });
            }
            View::Plain if self.last_told.elapsed() >= PLAIN_INTERVAL => {
                self.last_told = Instant::now();
                self.line(&format!("{what}: {done} of {total} runs"));
            }
            View::Plain => {}
        }
    }

    fn end_of_detection(&mut self, suspects: usize, orders: usize, elapsed: Duration) {
        self.suite_ended = true;
        let orders = plural(orders, "order", "orders");
        let tests = plural(suspects, "test", "tests");
        let what = match suspects {
            0 => "no test ended in different ways".to_owned(),
            1 => format!("{tests} ended in different ways; examining it"),
            _ => format!("{tests} ended in different ways; examining them"),
        };
        self.line(&format!("{orders} in {}: {what}", seconds(elapsed)));
        self.open_bar(suspects, "runs");
    }

    fn show_culprit(&self, test: &TestId, role: Role, culprit: &Culprit) {
        let (what, ends) = match role {
            Role::Victim => ("fails", culprit.ends.failed),
            Role::Brittle => ("passes", culprit.ends.passed),
            Role::Random | Role::Broken | Role::Independent => return,
        };
        let names = culprit.tests.iter().map(|test| printable(test.name()));
        let names: Vec<String> = names.collect();
        let names = names.join(if culprit.is_ordered {
            " and then "
        } else {
            " together with "
        });
        let runs = culprit.ends.passed + culprit.ends.failed;
        let time = seconds(self.born.elapsed());
        let label = style(format!("{:>9}", "FOUND"))
            .yellow()
            .bold()
            .for_stderr();
        self.line(&format!(
            "{label} {} {what} after {names} ({ends} of {runs} times) [{time}]",
            printable(test.name())
        ));
    }

    fn show_verdict(&mut self, finding: &Finding) {
        if !self.suite_ended {
            return;
        }
        self.done += 1;
        let label = finding.verdict.label().to_uppercase();
        let label = format!("{label:>9}");
        let label = if finding.verdict.is_flaky() {
            style(label).yellow()
        } else {
            style(label).red()
        };
        self.line(&format!(
            "{} {}",
            label.bold().for_stderr(),
            printable(finding.test.name())
        ));
        if let View::Bar(bar) = &self.view {
            bar.set_position(self.done as u64);
        }
    }

    fn open_bar(&self, length: usize, noun: &str) {
        let View::Bar(bar) = &self.view else { return };
        let template =
            format!("{{spinner}} {{bar:24}} {{pos}}/{{len}} {noun}{{left}}  {{wide_msg}}");
        bar.set_style(
            ProgressStyle::with_template(&template)
                .expect("a fixed template")
                .with_key("left", write_time_left)
                .progress_chars("█▉▊▋▌▍▎▏ "),
        );
        bar.reset();
        bar.set_length(length as u64);
    }

    /// A line that stays.
    fn line(&self, text: &str) {
        match &self.view {
            View::Bar(bar) => bar.println(text),
            // Without a standard error there is nobody to show progress to.
            View::Plain => drop(writeln!(std::io::stderr(), "{text}")),
        }
    }
}

/// The estimate, once there is something to estimate from.
fn write_time_left(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    if state.pos() > 0 {
        // The bar's own line is a string: writing to it cannot fail.
        let _ = write!(text, ", {:#} left", HumanDuration(state.eta()));
    }
}

/// The time left if the rest goes as the part so far.
fn estimate(elapsed: Duration, done: usize, total: usize) -> Duration {
    let done = u32::try_from(done.max(1)).unwrap_or(u32::MAX);
    let left = u32::try_from(total)
        .unwrap_or(u32::MAX)
        .saturating_sub(done);
    elapsed / done * left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_takes_the_rest_to_go_as_the_part_so_far() {
        let elapsed = Duration::from_secs(10);
        assert_eq!(estimate(elapsed, 20, 60), Duration::from_secs(20));
        assert_eq!(estimate(elapsed, 60, 60), Duration::ZERO);
        assert_eq!(estimate(elapsed, 0, 1), Duration::ZERO);
    }
}
