//! The verbs that write and ask the history.

mod anomalies;
mod confidence;
mod next;
mod next_run;
pub(crate) mod question;
mod rates;
mod record;
mod replay;
mod send;
mod simulate;
mod table;
mod unstable;

use crate::Exit;
use crate::flags::history::HistoryVerb;

pub(crate) fn answer(verb: &HistoryVerb) -> anyhow::Result<Exit> {
    match verb {
        HistoryVerb::Record(args) => record::record(args),
        HistoryVerb::Rates(args) => rates::rates(args),
        HistoryVerb::Confidence(args) => confidence::confidence(args),
        HistoryVerb::Unstable(args) => unstable::unstable(args),
        HistoryVerb::Next(args) => next::next(args),
        HistoryVerb::Anomalies(args) => anomalies::anomalies(args),
        HistoryVerb::Simulate(args) => simulate::simulate(args),
    }
}
