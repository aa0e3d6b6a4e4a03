//! What ran in a VM before a run: each stretch of it is kept once, however many failures come after it.

use std::sync::Arc;

use crate::run::TestName;
use crate::store::digest_of;

/// So many tests make a stretch.
const STRETCH: usize = 256;

/// The tests that had run in a VM at some moment, reruns included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    digest: [u8; 32],
    before: Option<Arc<Past>>,
    tests: Vec<TestName>,
}

impl Past {
    fn new(before: Option<Arc<Self>>, tests: Vec<TestName>) -> Self {
        let mut told = Vec::new();
        if let Some(before) = &before {
            told.extend(before.digest);
        }
        for test in &tests {
            // No name has a zero in it, so that no two lists are told in the same way.
            told.extend(test.name.as_bytes());
            told.push(0);
            told.extend(test.copy.to_le_bytes());
        }
        Self {
            digest: digest_of(&told),
            before,
            tests,
        }
    }

    /// What tells it from all others.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// What had run before its own tests.
    pub fn before(&self) -> Option<&Arc<Self>> {
        self.before.as_ref()
    }

    /// Its own tests, in the order in which they ran.
    pub fn tests(&self) -> &[TestName] {
        &self.tests
    }
}

/// What has run in a VM so far.
#[derive(Clone, Debug, Default)]
pub struct VmPast {
    stretches: Option<Arc<Past>>,
    recent: Vec<TestName>,
}

impl VmPast {
    /// A test has run.
    pub fn push(&mut self, test: TestName) {
        self.recent.push(test);
        if self.recent.len() == STRETCH {
            let recent = std::mem::take(&mut self.recent);
            let before = self.stretches.take();
            self.stretches = Some(Arc::new(Past::new(before, recent)));
        }
    }

    /// All of it.
    pub fn so_far(&self) -> Arc<Past> {
        match &self.stretches {
            Some(stretches) if self.recent.is_empty() => Arc::clone(stretches),
            before => Arc::new(Past::new(before.clone(), self.recent.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(number: usize) -> TestName {
        TestName {
            name: format!("test_{number}"),
            copy: 0,
            is_own: true,
        }
    }

    #[test]
    fn the_same_tests_in_the_same_order_are_the_same_past() {
        let of = |numbers: &mut dyn Iterator<Item = usize>| {
            let mut past = VmPast::default();
            numbers.for_each(|number| past.push(test(number)));
            past.so_far()
        };
        let own = of(&mut (0..600));
        assert_eq!(own.digest(), of(&mut (0..600)).digest());
        assert_ne!(own.digest(), of(&mut (0..600).rev()).digest());
        assert_ne!(own.digest(), of(&mut (1..600)).digest());
        assert_ne!(of(&mut (0..0)).digest(), of(&mut (0..1)).digest());
        let before = own.before().and_then(|before| before.before());
        assert_eq!(before.map(|before| before.tests().len()), Some(STRETCH));
        assert_eq!(own.tests().len(), 600 - 2 * STRETCH);
        assert!(of(&mut (0..2 * STRETCH)).tests().len() == STRETCH);
    }
}
