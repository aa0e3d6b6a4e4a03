//! Who may do what: a file of tokens, each kept as a digest, with its roles.
//!
//! The file is read again when it changes, so that a token that is taken out of it is worth nothing at once.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// What a token begins with, so that people and scanners know it for a secret.
const PREFIX: &str = "unflake_";

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// To send reports.
    Report,
    /// To read pages and the API.
    Read,
    /// To say that failures are faults, and to put tests into quarantine; and to read.
    Edit,
}

impl Role {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Read => "read",
            Self::Edit => "edit",
        }
    }
}

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Whose it is.
    pub name: String,
    /// What it allows.
    pub roles: Vec<Role>,
    /// The digest of its secret, in hexadecimal digits.
    pub hash: String,
    /// The day on which it was made.
    #[serde(default)]
    pub created: String,
}

impl Token {
    /// Whether it allows this.
    pub fn allows(&self, role: Role) -> bool {
        self.roles.contains(&role) || role == Role::Read && self.roles.contains(&Role::Edit)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default)]
    token: Vec<Token>,
}

/// Why a file of tokens is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read or written.
    #[error("cannot use the token file {}", .path.display())]
    File {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no file of tokens.
    #[error("{} is no token file: {why}", .path.display())]
    Syntax {
        /// Where.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// There is such a token.
    #[error("there is a token `{name}` already")]
    Taken {
        /// Its name.
        name: String,
    },
    /// There is no such token.
    #[error("there is no token `{name}`")]
    Missing {
        /// Its name.
        name: String,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    Random,
}

/// A file of tokens, as it is now.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    known: Mutex<Read>,
}

#[derive(Debug, Default)]
struct Read {
    stamp: Option<(SystemTime, u64)>,
    tokens: Vec<Token>,
}

impl TokenFile {
    /// Reads the file, which must be there.
    pub fn open(path: &Path) -> Result<Self, TokenError> {
        let file = Self {
            path: path.to_owned(),
            known: Mutex::default(),
        };
        read(path)?;
        Ok(file)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All tokens, as the file has them now. A file that is broken or gone has none.
    pub fn tokens(&self) -> Vec<Token> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let data = fs::metadata(&self.path);
        let stamp = data
            .and_then(|data| Ok((data.modified()?, data.len())))
            .ok();
        // On some disks two changes within a moment have the same time, so a young file is read again.
        let is_young =
            stamp.is_some_and(|(time, _)| time.elapsed().is_ok_and(|age| age.as_secs() < 3));
        if stamp.is_none() || known.stamp != stamp || is_young {
            let tokens = read(&self.path).unwrap_or_default();
            *known = Read { stamp, tokens };
        }
        known.tokens.clone()
    }

    /// The token with this secret.
    pub fn find(&self, secret: &str) -> Option<Token> {
        let hash = digest(secret);
        self.by_hash(&hash)
    }

    pub(crate) fn by_hash(&self, hash: &str) -> Option<Token> {
        let wanted = blake3::Hash::from_hex(hash).ok()?;
        self.tokens().into_iter().find(|token| {
            // Hashes are compared in constant time.
            blake3::Hash::from_hex(&token.hash).is_ok_and(|hash| hash == wanted)
        })
    }
}

fn digest(secret: &str) -> String {
    blake3::hash(secret.as_bytes()).to_hex().to_string()
}

fn read(path: &Path) -> Result<Vec<Token>, TokenError> {
    let text = fs::read_to_string(path).map_err(|source| TokenError::File {
        path: path.to_owned(),
        source,
    })?;
    let contents: Contents = toml::from_str(&text).map_err(|error| TokenError::Syntax {
        path: path.to_owned(),
        why: error.message().to_owned(),
    })?;
    Ok(contents.token)
}

fn write(path: &Path, tokens: Vec<Token>) -> Result<(), TokenError> {
    let trouble = |source| TokenError::File {
        path: path.to_owned(),
        source,
    };
    let contents = Contents { token: tokens };
    let text = toml::to_string(&contents).expect("tokens are plain text");
    let text = format!(
        "# Tokens of `unflake serve`: made by `unflake token add`. Only digests stand here.\n\n{text}"
    );
    // Beside the file and then in its place, so that a server never reads half of it.
    let beside = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside).map_err(trouble)?;
    file.write_all(text.as_bytes()).map_err(trouble)?;
    file.sync_all().map_err(trouble)?;
    fs::rename(&beside, path).map_err(trouble)
}

/// Adds a token to a file, which is made if it is not there, and says its secret. It is kept nowhere.
pub fn add(path: &Path, name: &str, roles: &[Role], created: String) -> Result<String, TokenError> {
    let mut tokens = if path.exists() {
        read(path)?
    } else {
        Vec::new()
    };
    if tokens.iter().any(|token| token.name == name) {
        return Err(TokenError::Taken {
            name: name.to_owned(),
        });
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| TokenError::Random)?;
    let secret = format!("{PREFIX}{}", blake3::Hash::from_bytes(bytes).to_hex());
    tokens.push(Token {
        name: name.to_owned(),
        roles: roles.to_vec(),
        hash: digest(&secret),
        created,
    });
    write(path, tokens)?;
    Ok(secret)
}

/// Takes a token out of a file.
pub fn revoke(path: &Path, name: &str) -> Result<(), TokenError> {
    let mut tokens = read(path)?;
    let before = tokens.len();
    tokens.retain(|token| token.name != name);
    if tokens.len() == before {
        return Err(TokenError::Missing {
            name: name.to_owned(),
        });
    }
    write(path, tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_secret_until_it_is_revoked_and_its_secret_is_not_kept() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("tokens.toml");
        let secret = add(&path, "ci", &[Role::Report], "2026-11-18".to_owned()).unwrap();
        add(&path, "ann", &[Role::Edit], String::new()).unwrap();
        assert!(matches!(
            add(&path, "ci", &[], String::new()),
            Err(TokenError::Taken { .. })
        ));
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&secret) && !text.contains(&secret[PREFIX.len()..]));
        let file = TokenFile::open(&path).unwrap();
        let token = file.find(&secret).unwrap();
        assert!(token.allows(Role::Report) && !token.allows(Role::Read));
        assert!(file.find("unflake_no").is_none() && file.find("").is_none());
        assert!(file.tokens()[1].allows(Role::Read));
        revoke(&path, "ci").unwrap();
        assert!(file.find(&secret).is_none());
        assert!(matches!(
            revoke(&path, "ci"),
            Err(TokenError::Missing { .. })
        ));
        fs::write(&path, "[[token]]\nname = 3").unwrap();
        assert!(file.tokens().is_empty());
        assert!(matches!(
            TokenFile::open(&path),
            Err(TokenError::Syntax { .. })
        ));
    }
}
