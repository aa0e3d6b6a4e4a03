//! The seed of Python's hashes, which decides the order of sets, and with it what `test_area[shape2]` is.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::process::Command as Process;

/// The variable in which Python reads it.
const PYTHON: &str = "PYTHONHASHSEED";
/// The variable in which the runner reads the value that tests are to find in its place.
const OF_USER: &str = "UNFLAKE_HASH_SEED";

/// The seed of hashes in the interpreters of a run: one for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashSeed {
    /// The user's environment sets it, and interpreters inherit it.
    OfUser,
    /// It was drawn, because the user leaves it to chance.
    Drawn {
        /// The seed, never 0: that would switch the randomness of hashes off.
        seed: u32,
        /// The value in the user's environment, `random` for example.
        of_user: String,
    },
}

impl HashSeed {
    /// The user's, or a new one.
    pub fn draw() -> Self {
        let of_user = env::var_os(PYTHON).unwrap_or_default();
        match of_user.to_str() {
            Some(of_user) if is_left_to_chance(of_user) => {
                let drawn = RandomState::new().hash_one(0) >> 32;
                // A half of 64 bits always fits.
                let seed = u32::try_from(drawn).unwrap_or(u32::MAX).max(1);
                let of_user = of_user.to_owned();
                Self::Drawn { seed, of_user }
            }
            Some(_) | None => Self::OfUser,
        }
    }

    /// The seed, if it was drawn.
    pub(crate) fn drawn(&self) -> Option<u32> {
        match self {
            Self::OfUser => None,
            Self::Drawn { seed, .. } => Some(*seed),
        }
    }

    /// Another one, a different one for each number; the user's own stays.
    pub(crate) fn another(&self, number: usize) -> Self {
        match self {
            Self::OfUser => Self::OfUser,
            Self::Drawn { seed, of_user } => {
                let step = u32::try_from(number).unwrap_or_default() + 1;
                Self::Drawn {
                    seed: seed.wrapping_add(step.wrapping_mul(0x9E37_79B9)).max(1),
                    of_user: of_user.clone(),
                }
            }
        }
    }

    /// Gives it to an interpreter. Tests in it find what the user has.
    pub(crate) fn set(&self, process: &mut Process) {
        match self {
            Self::OfUser => {}
            Self::Drawn { seed, of_user } => {
                process.env(PYTHON, seed.to_string()).env(OF_USER, of_user);
            }
        }
    }

    /// Gives an interpreter a seed of its own, which its tests can see, unless the user's is set.
    pub(crate) fn vary(&self, process: &mut Process, seed: u32) {
        match self {
            Self::OfUser => {}
            Self::Drawn { .. } => {
                process.env(PYTHON, seed.to_string()).env_remove(OF_USER);
            }
        }
    }
}

/// Whether Python would draw a seed by itself.
fn is_left_to_chance(value: &str) -> bool {
    value.is_empty() || value == "random"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_drawn_where_python_would_draw_one() {
        assert!(is_left_to_chance("") && is_left_to_chance("random"));
        assert!(!is_left_to_chance("0") && !is_left_to_chance("none of these"));
    }

    #[test]
    fn tests_find_what_the_user_has() {
        let seed = HashSeed::Drawn {
            seed: 7,
            of_user: "random".to_owned(),
        };
        let mut process = Process::new("python");
        seed.set(&mut process);
        let value = |name: &str| {
            let mut all = process.get_envs();
            all.find(|(one, _)| *one == name)
                .and_then(|(_, value)| value)
        };
        assert_eq!(value(PYTHON), Some("7".as_ref()));
        assert_eq!(value(OF_USER), Some("random".as_ref()));
        assert_eq!(seed.drawn(), Some(7));
    }
}
