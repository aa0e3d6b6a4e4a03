//! Flags and file together, checked: flags beat file beats default. Below here nobody sees either.

mod other_builds;
mod policy;
mod project;

use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::ladder::Rungs;
use unflake_core::pattern::Pattern;
use unflake_core::plan::{Override, Plan};
use unflake_core::policy::Policy;
use unflake_core::rules::Rules;
use unflake_core::threshold::Threshold;
use unflake_core::trial::Birth;
use unflake_driver::blame::memory::Tested;
use unflake_driver::git::difference::{Against, CheckBase};
use unflake_driver::lab::session::Wish;

use project::{find_place, read_project};

pub(crate) use project::cache_folder;

use crate::config::{Config, ConfigError, Share};
use crate::flags::args::{
    AgainstArgs, FrameworkArg, FreshBy, ProjectArgs, RunArgs, When, parse_seconds, parse_share,
};
use crate::flags::history::KeepArgs;
use crate::history::own_files::OwnFiles;
use crate::history::{memory, place};
use crate::view::explain::Trouble;

/// The number of other hash seeds with which a test runs that failed everywhere else, before it is known whose
/// failure it is.
const OTHER_SEEDS: u32 = 1;

/// The settings of a run, and the meaning of its result.
#[derive(Debug)]
pub(crate) struct Settings {
    /// One for each part of the project that has VMs of its own; never empty.
    pub(crate) wishes: Vec<Wish>,
    pub(crate) policy: Policy,
    /// The history that the runs are added to, if they are, and what they add to the work tree.
    pub(crate) own: Option<OwnFiles>,
}

impl Settings {
    pub(crate) fn for_run(args: &RunArgs) -> anyhow::Result<Self> {
        let run_began = SystemTime::now();
        let (projects, config, path) = read_project(&args.project)?;
        let folder = projects[0].folder();
        let store = find_store(&args.keep, folder, &config, path.as_deref());
        let path = path.unwrap_or_default();
        let run = &config.run;
        let rungs = Rungs::default();
        let threshold = Threshold::default();
        let plan = Plan {
            rungs: Rungs {
                immediate: args.immediate.or(run.immediate).unwrap_or(rungs.immediate),
                end: args.end.or(run.end).unwrap_or(rungs.end),
                fresh: args.ladder.fresh.or(run.fresh).unwrap_or(rungs.fresh),
                other_seeds: if projects[0].hash_seed().is_some() {
                    OTHER_SEEDS
                } else {
                    0
                },
            },
            threshold: Threshold {
                ratio: match (args.ladder.threshold, &run.threshold) {
                    (Some(ratio), _) => ratio,
                    (None, Some(share)) => read_share(share, &path)?,
                    (None, None) => threshold.ratio,
                },
                floor: args
                    .ladder
                    .threshold_floor
                    .or(run.threshold_floor)
                    .unwrap_or(threshold.floor),
            },
            timeout: match (args.ladder.timeout, run.timeout) {
                (Some(timeout), _) => Some(timeout),
                (None, Some(seconds)) => Some(read_timeout(seconds, "run.timeout", &path)?),
                (None, None) => None,
            },
            overrides: read_overrides(&config, &path)?,
        };
        if run.jobs == Some(0) {
            return Err(bad_value(&path, "run.jobs", "is 1 or more").into());
        }
        let fresh_by = read_fresh_by(args.ladder.fresh_by, run.fresh_by.as_deref(), &path)?;
        let mut against = read_against(&args.against, &config, &path)?;
        if let Some(against) = &mut against {
            against.run_began = Some(run_began);
            against.reports.extend(args.result.junit.clone());
        }
        let reports = args.against.reports.iter().cloned().chain(outputs());
        let reports = reports.chain(args.result.junit.clone()).collect();
        let own = store.map(|store| OwnFiles::new(&store, folder, reports, run_began));
        if let (Some(against), Some(own)) = (&mut against, &own) {
            let memory = memory::of(own);
            let tested = memory.clone();
            against.tested = Some(Tested::new(move |commit| {
                tested.first_tested(commit).is_some()
            }));
            against.memory = Some(memory);
        }
        let wishes = projects.into_iter().map(|project| Wish {
            project,
            plan: plan.clone(),
            jobs: args.jobs.or(run.jobs),
            fresh_by,
            against: against.clone(),
            vms_before: 0,
        });
        let wishes = wishes.collect();
        let policy = policy::read(&args.result, run, &path)?;
        Ok(Self {
            wishes,
            policy,
            own,
        })
    }

    /// The history of a project, if something is to be added to it.
    pub(crate) fn store_of(
        project: &ProjectArgs,
        keep: &KeepArgs,
    ) -> anyhow::Result<Option<Utf8PathBuf>> {
        let (projects, config, path) = read_project(project)?;
        let folder = projects[0].folder();
        Ok(find_store(keep, folder, &config, path.as_deref()))
    }

    pub(crate) fn for_list(args: &ProjectArgs) -> anyhow::Result<Vec<Wish>> {
        let (projects, _, _) = read_project(args)?;
        let wishes = projects.into_iter().map(|project| Wish {
            project,
            plan: Plan::default(),
            jobs: Some(1),
            fresh_by: None,
            against: None,
            vms_before: 0,
        });
        Ok(wishes.collect())
    }

    /// The run that records calls. Maven is not started: its tests cannot be traced.
    pub(crate) fn for_tracing(args: &ProjectArgs) -> anyhow::Result<Wish> {
        if find_place(args)?.framework == FrameworkArg::Maven {
            return Err(Trouble::NoTracer.into());
        }
        let wishes = Self::for_list(args)?.into_iter();
        let mut wishes = wishes.filter(|wish| wish.project.can_trace());
        Ok(wishes.next().ok_or(Trouble::NoTracer)?)
    }
}

/// The history, unless nothing is to be added to it.
fn find_store(
    keep: &KeepArgs,
    folder: &Utf8Path,
    config: &Config,
    path: Option<&Utf8Path>,
) -> Option<Utf8PathBuf> {
    let is_kept = !keep.no_record && config.history.record != Some(false);
    is_kept.then(|| place::find(keep.place.store.as_deref(), folder, config, path))
}

/// The wishes about the latest changes: all that can be known, unless the user says otherwise.
fn read_against(
    args: &AgainstArgs,
    config: &Config,
    path: &Utf8Path,
) -> Result<Option<Against>, ConfigError> {
    let (base, config) = (&config.base, &config.intersect);
    let is_wanted = match args.intersect {
        Some(when) => when == When::Always,
        None => args.base.is_some() || config.enabled != Some(false),
    };
    let written = base.budget;
    let written = written.map(|seconds| read_timeout(seconds, "base.budget", path));
    let written = written.transpose()?;
    if !is_wanted {
        return Ok(None);
    }
    let check_base = match (args.check_base, config.check_base) {
        (Some(When::Always), _) | (None, Some(true)) => CheckBase::Always,
        (Some(When::Never), _) | (None, Some(false)) => CheckBase::Never,
        (None, None) => CheckBase::WithinBudget,
    };
    let asked = [args.intersect, args.check_base];
    let is_required = asked.contains(&Some(When::Always)) || args.base.is_some();
    Ok(Some(Against {
        base: args.base.clone().or_else(|| config.base.clone()),
        rules: Rules::with(&config.always, &config.never),
        check_base,
        is_required,
        budget: args.blame_budget.or(written),
        setup: base.setup.clone(),
        memory: None,
        tested: None,
        reports: args.reports.iter().cloned().chain(outputs()).collect(),
        run_began: None,
        readers: None,
    }))
}

/// The files that our own output goes to, where the system tells.
fn outputs() -> impl Iterator<Item = Utf8PathBuf> {
    let outputs = ["/proc/self/fd/1", "/proc/self/fd/2"].into_iter();
    let outputs = outputs.filter_map(|output| Utf8Path::new(output).read_link_utf8().ok());
    outputs.filter(|path| path.is_file())
}

fn read_overrides(config: &Config, path: &Utf8Path) -> Result<Vec<Override>, ConfigError> {
    let read = |one: &crate::config::OverrideConfig| {
        let timeout = one
            .timeout
            .map(|seconds| read_timeout(seconds, "override.timeout", path));
        Ok(Override {
            tests: Pattern::new(&one.tests),
            immediate: one.immediate,
            end: one.end,
            fresh: one.fresh,
            timeout: timeout.transpose()?,
        })
    };
    config.overrides.iter().map(read).collect()
}

fn read_share(share: &Share, path: &Utf8Path) -> Result<f64, ConfigError> {
    let text = match share {
        Share::Text(text) => text.clone(),
        Share::Number(number) => number.to_string(),
    };
    parse_share(&text)
        .map_err(|trouble| bad_value(path, "run.threshold", &format!("is wrong: {trouble}")))
}

fn read_timeout(seconds: f64, key: &str, path: &Utf8Path) -> Result<Duration, ConfigError> {
    parse_seconds(&seconds.to_string())
        .map_err(|trouble| bad_value(path, key, &format!("is wrong: {trouble}")))
}

fn read_fresh_by(
    typed: Option<FreshBy>,
    written: Option<&str>,
    path: &Utf8Path,
) -> Result<Option<Birth>, ConfigError> {
    match (typed, written) {
        (Some(FreshBy::Exec), _) | (None, Some("exec")) => Ok(Some(Birth::Exec)),
        (Some(FreshBy::Fork), _) | (None, Some("fork")) => Ok(Some(Birth::Fork)),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(bad_value(path, "run.fresh-by", "is \"exec\" or \"fork\"")),
    }
}

fn bad_value(path: &Utf8Path, key: &str, trouble: &str) -> ConfigError {
    ConfigError::Value {
        path: path.to_owned(),
        key: key.to_owned(),
        trouble: trouble.to_owned(),
    }
}
