//! How well the board ranks: of the failures that people called faults, how many stood in the first list?

use serde::Serialize;

use crate::board::labels::{FIRST_LIST, Said};

/// The board's own record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Score {
    /// Failures that were called faults on the board.
    pub(crate) labelled: usize,
    /// Those of them that stood in the first list then.
    pub(crate) in_first_list: usize,
    /// Their share.
    pub(crate) share: Option<f64>,
}

impl Score {
    pub(crate) fn of(said: &Said) -> Self {
        let stood = said.stood.iter();
        let stood = stood.filter(|(run, _)| said.faults.contains_key(run));
        let lists: Vec<&String> = stood.map(|(_, list)| list).collect();
        let (labelled, first) = (
            lists.len(),
            lists.iter().filter(|list| **list == FIRST_LIST).count(),
        );
        Self {
            labelled,
            in_first_list: first,
            share: (labelled > 0).then(|| unflake_core::quantify::curve::share(first, labelled)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::labels::{Fault, SECOND_LIST};

    #[test]
    fn only_faults_that_stand_are_counted() {
        let mut said = Said::default();
        let fault = || Fault {
            bug: String::new(),
            author: String::new(),
            time: 0,
        };
        assert_eq!(Score::of(&said).share, None);
        for (run, list) in [(1, FIRST_LIST), (2, SECOND_LIST), (3, FIRST_LIST)] {
            said.stood.insert(run, list.to_owned());
        }
        said.faults.extend([(1, fault()), (2, fault())]);
        let score = Score::of(&said);
        assert_eq!((score.labelled, score.in_first_list), (2, 1));
        assert_eq!(score.share, Some(0.5));
    }
}
