//! What a test is called and where it stands. Nothing here says how it behaved.

use std::fmt;
use std::sync::Arc;

/// A test's name exactly as its framework prints it.
///
/// It is never decorated, shortened or replaced by an index. A framework may list the same name
/// twice; then `copy` tells the two apart, and people see the same name for both.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TestId {
    name: Arc<str>,
    copy: u32,
}

impl TestId {
    /// The first (usually the only) test of this name.
    pub fn new(name: &str) -> Self {
        Self::copy_of(name, 0)
    }

    /// The test of this name that stands at place `copy` among its namesakes, from 0.
    pub fn copy_of(name: &str, copy: u32) -> Self {
        Self {
            name: Arc::from(name),
            copy,
        }
    }

    /// The framework's own name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The place among tests of the same name, from 0.
    pub fn copy(&self) -> u32 {
        self.copy
    }

    /// Class and method, if it is named as JUnit's tests are: `shop.CartTest#total`.
    pub fn class_and_method(&self) -> Option<(&str, &str)> {
        let (class, method) = self.name.split_once('#')?;
        // pytest writes the file first, and a `#` only in parameters.
        (!class.contains("::") && !class.contains('/')).then_some((class, method))
    }
}

impl fmt::Display for TestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// A test as the framework found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name.
    pub id: TestId,
    /// The file that defines it, relative to the framework's root.
    pub file: String,
    /// The line that defines it, from 1.
    pub line: u32,
}
