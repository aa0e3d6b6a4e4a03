//! Numbers about the server for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The bounds of the histogram, in seconds.
const BOUNDS: [f64; 8] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1.0, 5.0];

/// What the server has counted since it began.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) reports_added: AtomicU64,
    pub(crate) reports_known: AtomicU64,
    pub(crate) reports_refused: AtomicU64,
    pub(crate) runs_added: AtomicU64,
    pub(crate) listeners: AtomicU64,
    /// By route and status.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    /// By route: the counts under each bound, all, and their sum in seconds.
    times: Mutex<BTreeMap<String, Times>>,
}

/// The counts under each bound, all, and their sum.
type Times = ([u64; BOUNDS.len()], u64, f64);

/// What is asked of the store for each look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) tests: usize,
    pub(crate) runs: i64,
    pub(crate) bytes: u64,
}

impl Metrics {
    pub(crate) fn count(&self, route: &str, status: u16, took: Duration) {
        let mut requests = self.requests.lock().expect("nobody panics with it");
        *requests.entry((route.to_owned(), status)).or_default() += 1;
        drop(requests);
        let seconds = took.as_secs_f64();
        let mut times = self.times.lock().expect("nobody panics with it");
        let (under, all, sum) = times.entry(route.to_owned()).or_default();
        for (count, bound) in under.iter_mut().zip(BOUNDS) {
            *count += u64::from(seconds <= bound);
        }
        *all += 1;
        *sum += seconds;
    }

    /// The text that Prometheus reads.
    pub(crate) fn write(&self, gauges: Gauges) -> String {
        let mut text = String::new();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        text += &family(
            "unflake_reports_total",
            "counter",
            "Reports by what was done with them.",
        );
        for (result, counter) in [
            ("added", &self.reports_added),
            ("known", &self.reports_known),
            ("refused", &self.reports_refused),
        ] {
            // Writing into a string cannot fail.
            let _ = writeln!(
                text,
                "unflake_reports_total{{result=\"{result}\"}} {}",
                load(counter)
            );
        }
        text += &family(
            "unflake_runs_added_total",
            "counter",
            "Runs added by reports.",
        );
        let _ = writeln!(text, "unflake_runs_added_total {}", load(&self.runs_added));
        for (name, help, value) in [
            (
                "unflake_listeners",
                "Open streams of events.",
                load(&self.listeners),
            ),
            (
                "unflake_tests",
                "Tests with runs in the current periods.",
                gauges.tests as u64,
            ),
            (
                "unflake_runs",
                "Runs in the history.",
                gauges.runs.unsigned_abs(),
            ),
            (
                "unflake_store_bytes",
                "Size of the history on disk.",
                gauges.bytes,
            ),
        ] {
            text += &family(name, "gauge", help);
            let _ = writeln!(text, "{name} {value}");
        }
        self.write_requests(&mut text);
        text
    }

    fn write_requests(&self, text: &mut String) {
        *text += &family(
            "unflake_http_requests_total",
            "counter",
            "Requests by route and status.",
        );
        for ((route, status), count) in self.requests.lock().expect("nobody panics with it").iter()
        {
            let _ = writeln!(
                text,
                "unflake_http_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}"
            );
        }
        *text += &family(
            "unflake_http_seconds",
            "histogram",
            "Time to answer by route.",
        );
        for (route, (under, all, sum)) in self.times.lock().expect("nobody panics with it").iter() {
            for (count, bound) in under.iter().zip(BOUNDS) {
                let _ = writeln!(
                    text,
                    "unflake_http_seconds_bucket{{route=\"{route}\",le=\"{bound}\"}} {count}"
                );
            }
            let _ = writeln!(
                text,
                "unflake_http_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {all}\n\
                 unflake_http_seconds_sum{{route=\"{route}\"}} {sum}\n\
                 unflake_http_seconds_count{{route=\"{route}\"}} {all}"
            );
        }
    }
}

/// What stands before the values of one name.
fn family(name: &str, kind: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")
}
