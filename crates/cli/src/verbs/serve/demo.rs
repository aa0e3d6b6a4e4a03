//! A made-up history with all that a real one has: environments, jobs, messages, reruns and labels.
//!
//! What fails and when comes from the simulation, by a fixed seed; only the dates move, so that the last day
//! is yesterday.

use std::path::Path;

use unflake_core::failure::Fingerprint;
use unflake_core::quantify::simulation::{Distribution, Plan, SimulatedRun, Simulation};
use unflake_history::batch::{Batch, Packer};
use unflake_history::dates;
use unflake_history::engine::{self, Missing};
use unflake_history::run::{Ended, Label, More, Provenance, Row, TestName};
use unflake_history::store::digest_of;
use unflake_history::store::source::{Appended, Refused, Source};

/// Who owns the made-up tests.
pub(super) const OWNERS: &str = "\
/shop/payments/ @payments
/shop/search/ @search
/shop/mail/ @platform
";

const DAYS: i32 = 118;
const TESTS: u32 = 360;
const PLAN: Plan = Plan {
    tests: TESTS,
    runs: 70_000,
    days: DAYS,
    first_day: 0,
    releases: 1,
    rates: Distribution::Google,
    bursty: 0.3,
    clustered: 0.6,
    faults: 6,
    seed: 7,
};

/// On the last days nobody has filed a bug yet: that is what the board is for.
const UNKNOWN_DAYS: i32 = 3;

const PARTS: [&str; 8] = [
    "cart", "payments", "search", "mail", "login", "shipping", "reports", "api",
];
const DEEDS: [&str; 9] = [
    "total_is_rounded",
    "discount_applies_once",
    "empty_list",
    "retries_after_timeout",
    "keeps_order_of_results",
    "refuses_unknown_currency",
    "sends_one_message",
    "survives_restart",
    "pages_through_all_results",
];
const CASES: [&str; 5] = ["", "[eur]", "[usd-3 items]", "[guest]", "[très long café]"];
const ENVIRONMENTS: [&str; 4] = [
    "linux-py3.11",
    "linux-py3.13",
    "macos-py3.12",
    "windows-py3.12",
];
const MESSAGES: [&str; 8] = [
    "TimeoutError: no reply from 127.0.0.1:{n} within 2.0 s",
    "AssertionError: assert {n} == 3",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "sqlite3.OperationalError: database is locked",
    "AssertionError: expected ['a', 'b'], got ['b', 'a']",
    "FileNotFoundError: /tmp/pytest-{n}/cart.json",
    "KeyError: 'session'",
    "AssertionError: 1 mail expected, {n} found",
];

/// Makes the history.
pub(super) fn fill(path: &Path) -> anyhow::Result<()> {
    let mut store = engine::open(path, Missing::Make)?;
    let today = dates::day_of(dates::now());
    let plan = Plan {
        first_day: today - DAYS,
        ..PLAN
    };
    let mut simulation = Simulation::new(plan);
    let mut batches = Vec::new();
    let mut packer = Packer::new(|batch| {
        batches.push(batch);
        Ok::<(), ()>(())
    });
    while let Some(day) = simulation.next_day() {
        let clusters: Vec<Option<u32>> = simulation
            .truth()
            .tests
            .iter()
            .map(|test| test.cluster)
            .collect();
        for run in day {
            let run = plant(run, today);
            let cluster = clusters[run.test as usize];
            for row in to_rows(run, cluster, today) {
                let test = packer.test(&name(run.test), 0, true);
                let provenance = packer.provenance(&to_provenance(run));
                // The packer only remembers: it cannot fail.
                let _ = packer.push(Row {
                    test,
                    provenance,
                    ..row
                });
            }
        }
    }
    let _ = packer.flush();
    batches.reverse();
    let added = store.append(&mut Demo { batches })?;
    if matches!(added, Appended::Added { .. }) {
        store.append_labels(&labels(today))?;
    }
    Ok(())
}

/// The name of a made-up test.
fn name(test: u32) -> String {
    let pick = |from: &[&'static str], by: u32| from[by as usize % from.len()];
    let part = pick(&PARTS, test);
    let deed = pick(&DEEDS, test / 8);
    let case = pick(&CASES, test / 72);
    format!("shop/{part}/test_{part}.py::test_{deed}{case}")
}

/// A number that depends on nothing else.
fn mix(parts: [i64; 3]) -> u64 {
    let digest = digest_of(format!("{parts:?}").as_bytes());
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes"))
}

fn to_provenance(run: SimulatedRun) -> Provenance {
    // Four builds a day.
    let build = run.time / 21_600_000;
    let place = mix([build, i64::from(run.test), 1]) % 16;
    let place =
        [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 3, 3][usize::try_from(place).unwrap_or(0)];
    Provenance {
        revision: format!("{:016x}{:016x}", mix([build, 0, 2]), mix([build, 0, 3])) + "5eed0123",
        branch: "main".to_owned(),
        release: String::new(),
        environment: ENVIRONMENTS[place].to_owned(),
        job: format!(
            "{}",
            40_000 + build % 10_000 * 4 + i64::try_from(place).unwrap_or(0)
        ),
    }
}

/// Faults of the last days: which tests find them, how many days ago they came, and how often of ten runs.
const PLANTED: [(u32, i32, u64, u32); 5] = [
    (1, 1, 10, 901),
    (33, 1, 10, 901),
    (65, 1, 9, 901),
    (20, 1, 9, 902),
    (42, 8, 6, 903),
];

/// A run, with the faults of the last days.
fn plant(run: SimulatedRun, today: i32) -> SimulatedRun {
    let day = dates::day_of(run.time);
    let chance = mix([run.time, i64::from(run.test), 6]) % 10;
    let found = PLANTED
        .iter()
        .find(|(test, ago, of_ten, _)| *test == run.test && day >= today - ago && chance < *of_ten);
    match found {
        Some((.., fault)) => SimulatedRun {
            failed: true,
            bug: Some(*fault),
            ..run
        },
        None => run,
    }
}

/// A run, and the rerun after it.
fn to_rows(run: SimulatedRun, cluster: Option<u32>, today: i32) -> Vec<Row> {
    let first = Row {
        test: 0,
        provenance: 0,
        time: run.time,
        ended: if run.failed {
            Ended::FAILED
        } else {
            Ended::PASSED
        },
        attempt: 1,
        duration: Some(i64::from(run.milliseconds) * 1000),
        more: None,
    };
    if !run.failed {
        return vec![first];
    }
    let day = dates::day_of(run.time);
    let chance = mix([run.time, i64::from(run.test), 4]);
    let message = message(run, cluster, chance);
    let is_known = day < today - UNKNOWN_DAYS && run.bug.is_none_or(|bug| bug < 900);
    let passes_again = run.bug.is_none() && chance % 10 < 7;
    let verdict = match (run.bug, passes_again) {
        (None, true) => Some("flaky".to_owned()),
        (Some(_), _) if is_known => Some("broken".to_owned()),
        (Some(_) | None, _) => None,
    };
    let fingerprint = Fingerprint::of_text("", &message, "");
    let more = |rung: &str| More {
        rung: Some(rung.to_owned()),
        signature: Some(fingerprint.summary().to_owned()),
        fingerprint: Some(fingerprint.as_str().to_owned()),
        message: message.clone(),
        ..More::default()
    };
    let rerun = Row {
        time: run.time + 1000,
        ended: if passes_again {
            Ended::PASSED
        } else {
            Ended::FAILED
        },
        attempt: 2,
        more: (!passes_again).then(|| Box::new(more("fresh"))),
        ..first.clone()
    };
    let first = Row {
        more: Some(Box::new(More {
            bug: run
                .bug
                .filter(|_| is_known)
                .map(|bug| format!("SHOP-{}", 100 + bug)),
            verdict,
            ..more("suite")
        })),
        ..first
    };
    vec![first, rerun]
}

/// The message of a failure: the same for one fault, and for tests that fail together.
fn message(run: SimulatedRun, cluster: Option<u32>, chance: u64) -> String {
    let kind = match (run.bug, cluster) {
        (Some(bug), _) => u64::from(bug) + 1,
        (None, Some(cluster)) => u64::from(cluster) * 5 + 2,
        (None, None) => mix([0, i64::from(run.test), 5]),
    };
    let message = MESSAGES[usize::try_from(kind % 8).unwrap_or(0)];
    message.replace("{n}", &(40_000 + chance % 20_000).to_string())
}

struct Demo {
    batches: Vec<Batch>,
}

impl Source for Demo {
    fn next_batch(&mut self) -> Option<Batch> {
        self.batches.pop()
    }

    fn digest(&mut self) -> Result<[u8; 32], Refused> {
        Ok(digest_of(b"demo"))
    }

    fn name(&self) -> String {
        "a made-up history".to_owned()
    }
}

fn labels(today: i32) -> Vec<Label> {
    let quarantine = |test: u32, reason: &str, owner: &str, days: i32| Label {
        time: i64::from(today - 9) * 86_400_000,
        test: TestName {
            name: name(test),
            copy: 0,
            is_own: true,
        },
        run: None,
        kind: "quarantined".to_owned(),
        value: serde_json::json!({
            "reason": reason, "owner": owner, "until": dates::to_text(today + days),
        })
        .to_string(),
        author: "ann".to_owned(),
    };
    vec![
        quarantine(9, "the payment sandbox is slow at night", "@payments", 12),
        quarantine(26, "order of results depends on the machine", "@search", 5),
    ]
}
