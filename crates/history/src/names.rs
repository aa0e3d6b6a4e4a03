//! Many names, looked up again and again: their bytes lie close together, so that most of them stay in the
//! processor's cache.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Names with a number each.
#[derive(Default)]
pub(crate) struct Names {
    bytes: Vec<u8>,
    places: HashTable<Place>,
    state: RandomState,
}

struct Place {
    start: u32,
    end: u32,
    number: u32,
}

impl Place {
    fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Names {
    /// The number of a name, if it has one.
    pub(crate) fn find(&self, name: &[u8]) -> Option<u32> {
        let bytes = &self.bytes;
        let hash = self.state.hash_one(name);
        let found = self
            .places
            .find(hash, |place| &bytes[place.range()] == name);
        found.map(|place| place.number)
    }

    /// Gives a number to a name that has none. With four gigabytes of names it is not remembered.
    pub(crate) fn add(&mut self, name: &[u8], number: u32) {
        let start = u32::try_from(self.bytes.len());
        let end = u32::try_from(self.bytes.len() + name.len());
        let (Ok(start), Ok(end)) = (start, end) else {
            return;
        };
        self.bytes.extend_from_slice(name);
        let place = Place { start, end, number };
        let (bytes, state) = (&self.bytes, &self.state);
        self.places
            .insert_unique(state.hash_one(name), place, |place| {
                state.hash_one(&bytes[place.range()])
            });
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn each_name_has_the_number_that_it_was_given(names in proptest::collection::vec("[a-c]{0,3}", 0..60)) {
            let (mut ours, mut plain) = (Names::default(), HashMap::new());
            for (number, name) in (0..).zip(&names) {
                prop_assert_eq!(ours.find(name.as_bytes()), plain.get(name).copied());
                if !plain.contains_key(name) {
                    ours.add(name.as_bytes(), number);
                    plain.insert(name, number);
                }
            }
            ours.clear();
            prop_assert_eq!(ours.find(b"a"), None);
        }
    }
}
