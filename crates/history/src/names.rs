//! Many names, looked up again and again: each lies in the table itself, so that to find one is one look into
//! the memory and not three.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// So many bytes of a name lie in the table: with what else is there, a line of the processor's cache.
const NEAR: usize = 48;

/// Names with a number each.
#[derive(Default)]
pub(crate) struct Names {
    places: HashTable<Place>,
    /// What long names have beyond the bytes in the table.
    far: Vec<u8>,
    state: RandomState,
}

#[repr(align(64))]
struct Place {
    /// The first bytes of the name, and zeros after its end.
    near: [u8; NEAR],
    length: u32,
    /// Where the rest of the name begins in `far`.
    far: u32,
    number: u32,
}

impl Place {
    /// The rest of the name: nothing if all of it is near.
    fn rest<'a>(&self, far: &'a [u8]) -> &'a [u8] {
        let start = self.far as usize;
        &far[start..start + (self.length as usize).saturating_sub(NEAR)]
    }
}

impl Names {
    /// The number of a name, if it has one.
    pub(crate) fn find(&self, name: &[u8]) -> Option<u32> {
        let (near, rest) = split(name);
        let found = self.places.find(self.hash(&near, rest), |place| {
            place.length as usize == name.len()
                && place.near == near
                && (rest.is_empty() || place.rest(&self.far) == rest)
        });
        found.map(|place| place.number)
    }

    /// Gives a number to a name that has none. With four gigabytes of names it is not remembered.
    pub(crate) fn add(&mut self, name: &[u8], number: u32) {
        let (near, rest) = split(name);
        let length = u32::try_from(name.len());
        let start = u32::try_from(self.far.len());
        let (Ok(length), Ok(far)) = (length, start) else {
            return;
        };
        let place = Place {
            near,
            length,
            far,
            number,
        };
        let hash = self.hash(&near, rest);
        self.far.extend_from_slice(rest);
        let (far, state) = (&self.far, &self.state);
        self.places.insert_unique(hash, place, |place| {
            state.hash_one((place.near, place.rest(far)))
        });
    }

    fn hash(&self, near: &[u8; NEAR], rest: &[u8]) -> u64 {
        self.state.hash_one((near, rest))
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.far.clear();
        self.places.clear();
    }
}

/// The bytes of a name that lie in the table, and the others.
fn split(name: &[u8]) -> ([u8; NEAR], &[u8]) {
    let (start, rest) = name.split_at(name.len().min(NEAR));
    let mut near = [0; NEAR];
    near[..start.len()].copy_from_slice(start);
    (near, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn each_name_has_the_number_that_it_was_given(names in proptest::collection::vec("([a-c\\x00]{0,3}|[a-b]{47,50})", 0..60)) {
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
