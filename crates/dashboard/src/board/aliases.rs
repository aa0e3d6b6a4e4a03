//! Tests that the history knows by several names: what is said of one name, and what runs under it, counts for all.

use std::collections::HashMap;
use std::sync::Arc;

use unflake_history::book::{self, Alias};
use unflake_history::run::TestName;
use unflake_history::store::{Store, StoreError};

/// The tests with several names, by each of their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aliases {
    by_number: HashMap<u32, Arc<Alias>>,
    /// The last test that was looked at.
    last: u32,
}

impl Aliases {
    /// Reads the names anew if tests were added since.
    pub(crate) fn read(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let last = store.last_test()?;
        if last == self.last {
            return Ok(());
        }
        self.by_number.clear();
        for alias in book::aliases(store)? {
            let alias = Arc::new(alias);
            let same = alias
                .numbers
                .iter()
                .map(|number| (*number, Arc::clone(&alias)));
            self.by_number.extend(same);
        }
        self.last = last;
        Ok(())
    }

    /// The number that stands for a test: the first that it had.
    pub(crate) fn first(&self, number: u32) -> u32 {
        let alias = self.by_number.get(&number);
        alias.map_or(number, |alias| alias.numbers[0])
    }

    /// All numbers of a test.
    pub(crate) fn numbers(&self, number: u32) -> Vec<u32> {
        let alias = self.by_number.get(&number);
        alias.map_or_else(|| vec![number], |alias| alias.numbers.clone())
    }

    /// The best name of a test; none if there is no such test.
    pub(crate) fn name(
        &self,
        store: &dyn Store,
        number: u32,
    ) -> Result<Option<TestName>, StoreError> {
        match self.by_number.get(&number) {
            Some(alias) => Ok(Some(alias.name.clone())),
            None => store.test_by_number(number),
        }
    }
}
