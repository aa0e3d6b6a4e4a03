//! The experiments that name one suspect: a pair of it alone, or the suite once more.

use crate::experiment::{Between, Experiment, Times, TrialsTold, VmSpec};
use crate::nio::Setting;
use crate::test::TestId;

/// A suspect two times in a new process.
pub(super) fn alone(test: &TestId, setting: Setting) -> Experiment {
    let between = match setting {
        Setting::TornDown => Between::TearDown,
        Setting::Collected => Between::Collect,
        Setting::Suite
        | Setting::Class
        | Setting::Method
        | Setting::Reloaded
        | Setting::Confirm
        | Setting::Together
        | Setting::Replay
        | Setting::Plain
        | Setting::Alone
        | Setting::Ordered => Between::Nothing,
    };
    Experiment {
        vm: VmSpec::New,
        order: vec![test.clone()],
        times: Times::Twice(between),
        setting,
        told: TrialsTold::All,
    }
}

/// The suite once more: each test two times as in the detection, or one time as in a plain run.
pub(super) fn suite(tests: &[TestId], setting: Setting) -> Experiment {
    let times = if setting == Setting::Plain {
        Times::Once
    } else {
        Times::Twice(Between::Nothing)
    };
    Experiment {
        vm: VmSpec::Suite,
        order: tests.to_vec(),
        times,
        setting,
        told: TrialsTold::All,
    }
}
