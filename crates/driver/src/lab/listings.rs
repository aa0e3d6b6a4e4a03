//! What the lists of several VMs tell together: whether a name stands for the same test in each, and which
//! random generators the project seeds.
//!
//! Where parameters come from a set, a name stands for another of them in another VM: what is listed under it there is
//! listed under another name here. Where a parameter is drawn, a `uuid4()` for example, the first VM lists it nowhere. An
//! id that tells the time, or what was drawn, is another in each VM: what stands in its place there is the same test.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use unflake_core::test::TestId;
use unflake_core::trial::{Rung, VmId};

use crate::lab::lane::Lane;
use crate::lab::session::{Halt, Session};
use crate::protocol::messages::{Collected, Name};

/// The random generators that a copy can draw anew.
const GENERATORS: [&str; 2] = ["random", "numpy"];

/// What VMs told of their tests and generators, beside what the first listed.
#[derive(Default)]
pub(crate) struct Listings {
    /// The parameters of tests in a VM, where they are not those of the first's list.
    params: HashMap<(VmId, TestId), String>,
    /// Tests of which a VM has a parameter that the first lists under no name: it is drawn anew.
    drawn: HashSet<(VmId, TestId)>,
    /// What a test is called in a VM that has no test of its name, but one of the same function in its place.
    names: HashMap<(VmId, TestId), TestId>,
    /// The tests whose failures are asked about, where others run before them in orders: they are known by their own names
    /// and parameters only, and the others also by their places.
    pub(crate) asked: HashSet<TestId>,
    /// The generators that stand alike in all VMs that listed the suite, once there were two.
    pub(crate) alike: Option<BTreeSet<String>>,
}

impl Listings {
    /// Notes what a VM lists otherwise than the first did.
    fn compare(&mut self, first: &Collected, vm: VmId, collected: &Collected) {
        let known = first.tests.iter();
        let known: HashMap<(&str, u32), Option<&String>> = known
            .map(|one| (one.name.as_pair(), one.params.as_ref()))
            .collect();
        for listed in &collected.tests {
            let of_first = known.get(&listed.name.as_pair()).copied().flatten();
            if let (Some(before), Some(params)) = (of_first, &listed.params)
                && before != params
            {
                let test = listed.name.to_id();
                if is_drawn(first, &test, params) {
                    self.drawn.insert((vm, test.clone()));
                }
                self.params.insert((vm, test), params.clone());
            }
        }
        let renamed = renamed(first, collected).into_iter();
        self.names
            .extend(renamed.map(|(here, there)| ((vm, here), there)));
        let names = |list: &'_ Collected| -> Vec<TestId> {
            list.tests.iter().map(|one| one.name.to_id()).collect()
        };
        if first.tests.len() == collected.tests.len() && names(first) == names(collected) {
            self.meet(first, collected);
        }
    }

    /// Notes which generators stand alike in two VMs that listed the same suite.
    fn meet(&mut self, first: &Collected, collected: &Collected) {
        let is_alike = |name: &&str| match (first.chance.get(*name), collected.chance.get(*name)) {
            (Some(Some(one)), Some(Some(other))) => one == other,
            (Some(_) | None, Some(_) | None) => false,
        };
        let alike = GENERATORS.iter().filter(|name| is_alike(name));
        let alike: BTreeSet<String> = alike.map(ToString::to_string).collect();
        self.alike = Some(match &self.alike {
            Some(known) => known.intersection(&alike).cloned().collect(),
            None => alike,
        });
    }

    /// The parameters of a test in a VM, if they are not those of the first's list.
    fn params_in(&self, vm: VmId, test: &TestId) -> Option<&String> {
        self.params.get(&(vm, test.clone()))
    }

    /// Whether a test only runs before those that are asked about.
    fn is_before_others(&self, test: &TestId) -> bool {
        !self.asked.is_empty() && !self.asked.contains(test)
    }

    /// Whether a VM may draw the parameters of a test anew.
    fn may_draw(&self, vm: VmId, test: &TestId) -> bool {
        self.is_before_others(test) && self.drawn.contains(&(vm, test.clone()))
    }

    /// What a test is called in a VM.
    pub(crate) fn name_in(&self, vm: VmId, test: &TestId) -> Name {
        let there = self.names.get(&(vm, test.clone()));
        Name::from(
            there
                .filter(|_| self.is_before_others(test))
                .unwrap_or(test),
        )
    }

    /// Whether some VM calls a test otherwise.
    pub(crate) fn is_renamed(&self, test: &TestId) -> bool {
        self.names.keys().any(|(_, one)| one == test)
    }

    /// The generators that nobody seeds: copies draw anew from them.
    fn unseeded(&self) -> Vec<String> {
        let is_seeded = |name: &str| self.alike.as_ref().is_some_and(|all| all.contains(name));
        let unseeded = GENERATORS.iter().filter(|name| !is_seeded(name));
        unseeded.map(ToString::to_string).collect()
    }
}

/// Whether parameters that a VM has for a test are those of no test of the same function in the first list.
fn is_drawn(first: &Collected, test: &TestId, params: &str) -> bool {
    let function = function(test.name());
    let mut siblings = first.tests.iter();
    !siblings.any(|one| {
        let (name, _) = one.name.as_pair();
        self::function(name) == function && one.params.as_deref() == Some(params)
    })
}

/// What the tests of the first list are called in another, where a function has as many other names there.
pub(crate) fn renamed(first: &Collected, other: &Collected) -> Vec<(TestId, TestId)> {
    let mut there = only_in(other, first);
    if there.is_empty() {
        return Vec::new();
    }
    let mut renamed = Vec::new();
    for (function, here) in only_in(first, other) {
        let there = there.remove(function).unwrap_or_default();
        if here.len() == there.len() {
            renamed.extend(here.into_iter().zip(there));
        }
    }
    renamed
}

/// The tests of a list that another does not have, by function.
fn only_in<'a>(list: &'a Collected, other: &Collected) -> BTreeMap<&'a str, Vec<TestId>> {
    let others = other.tests.iter().map(|one| one.name.as_pair());
    let others: HashSet<(&str, u32)> = others.collect();
    let mut only: BTreeMap<&str, Vec<TestId>> = BTreeMap::new();
    for listed in &list.tests {
        let (name, copy) = listed.name.as_pair();
        if !others.contains(&(name, copy)) {
            only.entry(function(name))
                .or_default()
                .push(listed.name.to_id());
        }
    }
    only
}

/// A name without what tells the parameters.
fn function(name: &str) -> &str {
    name.split_once('[').map_or(name, |(function, _)| function)
}

impl Session {
    /// Compares what a VM lists with what the first did.
    pub(crate) fn compare_listing(&mut self, vm: VmId, collected: &Collected) {
        if let Some(first) = &self.suite {
            self.listings.compare(first, vm, collected);
        }
    }

    /// Whether a VM has another test under this name than the one that was seen to fail; where none was, than
    /// the first VM. As long as one of them does not tell, it is the same.
    pub(crate) fn is_other_test(&self, test: &TestId, vm: VmId, rung: Rung) -> bool {
        if rung == Rung::Suite || self.listings.params.is_empty() {
            return false;
        }
        let place = self.places.get(test).copied();
        let listed = place.and_then(|place| self.listed().tests[place].params.as_ref());
        let params = |vm: VmId| self.listings.params_in(vm, test).or(listed);
        let mut suspects = self.suspects.iter().rev();
        let suspect = suspects.find(|suspect| suspect.test == *test);
        let failed = suspect.and_then(|suspect| suspect.trials.first());
        if self.listings.may_draw(vm, test) {
            return false;
        }
        let there = failed.map_or(listed, |trial| params(trial.vm));
        let here = params(vm);
        here.is_some() && there.is_some() && here != there
    }

    /// The generators that a copy draws anew.
    pub(crate) fn redraw(&self) -> Vec<String> {
        if !self.wish.project.can_copy() {
            return Vec::new();
        }
        self.listings.unseeded()
    }

    /// Finds out which generators the project seeds, if that takes one more VM. Nobody else works meanwhile.
    ///
    /// One that cannot list the suite tells nothing: then copies draw anew from all.
    pub(crate) fn learn_chance(&mut self) -> Result<(), Halt> {
        let is_seeded = self.listed().chance.values().any(Option::is_some);
        if self.listings.alike.is_some() || !is_seeded || !self.wish.project.can_copy() {
            return Ok(());
        }
        let workspace = self.new_workspace()?;
        let vm = self.start_in(workspace.as_ref(), &[])?;
        let worker = self.worker(0);
        self.await_tests(&[], worker.as_ref(), vm)?;
        self.listings.alike.get_or_insert_default();
        self.leave_lane(Lane::new(vm, workspace, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::messages::Listed;

    fn collected(tests: &[(&str, &str)], random: Option<&str>) -> Collected {
        let listed = |(name, params): &(&str, &str)| Listed {
            name: Name::from(&TestId::new(name)),
            file: "test_a.py".to_owned(),
            line: 1,
            params: Some((*params).to_owned()),
        };
        Collected {
            root: "/shop".to_owned(),
            config_file: None,
            tests: tests.iter().map(listed).collect(),
            errors: Vec::new(),
            blocked: false,
            deselected: 0,
            replay: Vec::new(),
            positional: Vec::new(),
            left_out: Vec::new(),
            imported_from: Vec::new(),
            search_path: None,
            installed: None,
            chance: [("random".to_owned(), random.map(ToOwned::to_owned))].into(),
        }
    }

    #[test]
    fn parameters_that_are_not_those_of_the_first_list_are_kept() {
        let first = collected(&[("t[a0]", "1"), ("t[a1]", "2"), ("u[a0]", "3")], None);
        let mut listings = Listings::default();
        listings.compare(&first, VmId(1), &collected(&[("t[a1]", "1")], None));
        listings.compare(&first, VmId(2), &collected(&[("t[a1]", "2")], None));
        let test = TestId::new("t[a1]");
        let params = |vm| listings.params_in(VmId(vm), &test).map(String::as_str);
        assert_eq!(params(1), Some("1"));
        assert_eq!(params(2), None, "as in the first");
    }

    #[test]
    fn parameters_that_the_first_lists_under_no_name_are_drawn() {
        let first = collected(&[("t[a0]", "1"), ("t[a1]", "2"), ("u[a0]", "3")], None);
        let mut listings = Listings::default();
        let moved = [("t[a0]", "2"), ("t[a1]", "1"), ("u[a0]", "3")];
        listings.compare(&first, VmId(1), &collected(&moved, None));
        let anew = [("t[a0]", "1"), ("t[a1]", "2"), ("u[a0]", "2")];
        listings.compare(&first, VmId(2), &collected(&anew, None));
        let may_draw =
            |listings: &Listings, vm, name| listings.may_draw(VmId(vm), &TestId::new(name));
        assert!(!may_draw(&listings, 2, "u[a0]"), "nobody is asked about");
        listings.asked.insert(TestId::new("v"));
        assert!(!may_draw(&listings, 1, "t[a0]") && !may_draw(&listings, 1, "t[a1]"));
        assert!(may_draw(&listings, 2, "u[a0]") && !may_draw(&listings, 2, "t[a1]"));
        listings.asked.insert(TestId::new("u[a0]"));
        assert!(!may_draw(&listings, 2, "u[a0]"), "it is asked about");
    }

    #[test]
    fn an_id_that_is_another_in_each_vm_is_known_by_its_place() {
        let first = collected(&[("t[10:00]", "1"), ("t[a]", "2"), ("t[0.1]", "3")], None);
        let mut listings = Listings::default();
        listings.asked.insert(TestId::new("u"));
        let later = [("t[10:01]", "4"), ("t[a]", "2"), ("t[0.7]", "5")];
        listings.compare(&first, VmId(1), &collected(&later, None));
        let name = |test| {
            let test = TestId::new(test);
            listings.name_in(VmId(1), &test).test
        };
        assert_eq!(name("t[10:00]"), "t[10:01]");
        assert_eq!(name("t[0.1]"), "t[0.7]");
        assert_eq!(name("t[a]"), "t[a]");
        let fewer = [("t[10:01]", "4"), ("t[a]", "2"), ("u[0.7]", "5")];
        assert_eq!(renamed(&first, &collected(&fewer, None)), []);
    }

    #[test]
    fn a_generator_that_stands_alike_in_two_vms_is_seeded() {
        let suite = [("t", "")];
        let first = collected(&suite, Some("aa"));
        let mut listings = Listings::default();
        assert_eq!(listings.unseeded(), ["random", "numpy"]);
        listings.compare(&first, VmId(1), &collected(&suite, Some("aa")));
        assert_eq!(listings.unseeded(), ["numpy"]);
        listings.compare(&first, VmId(2), &collected(&suite, Some("bb")));
        assert_eq!(listings.unseeded(), ["random", "numpy"]);
    }

    #[test]
    fn a_vm_that_lists_other_tests_tells_nothing_of_generators() {
        let first = collected(&[("t", ""), ("u", "")], Some("aa"));
        let mut listings = Listings::default();
        listings.compare(&first, VmId(1), &collected(&[("t", "")], Some("aa")));
        assert_eq!(listings.unseeded(), ["random", "numpy"]);
    }

    #[test]
    fn a_generator_that_nobody_touched_is_not_seeded() {
        let first = collected(&[("t", "")], None);
        let mut listings = Listings::default();
        listings.compare(&first, VmId(1), &collected(&[("t", "")], None));
        assert_eq!(listings.unseeded(), ["random", "numpy"]);
    }
}
