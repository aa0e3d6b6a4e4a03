//! The messages of a runner about state, as `docs/protocol.md` describes them.

use serde::Deserialize;
use unflake_core::state::Piece;

/// A piece of state on the wire.
#[derive(Debug, Deserialize)]
pub(crate) struct WirePiece {
    key: String,
    kind: String,
    path: String,
    before: Option<String>,
    after: Option<String>,
    owner: Option<String>,
    mock: bool,
    restorable: bool,
    #[serde(default)]
    ends: Vec<String>,
}

impl From<WirePiece> for Piece {
    fn from(wire: WirePiece) -> Self {
        Self {
            key: wire.key,
            kind: wire.kind,
            path: wire.path,
            before: wire.before,
            after: wire.after,
            owner: wire.owner,
            is_mock: wire.mock,
            is_restorable: wire.restorable,
            ends: wire.ends,
        }
    }
}

/// The place at which a piece of state was written, as far as it could be seen.
#[derive(Clone, Debug, Deserialize)]
pub struct WirePlace {
    /// The piece.
    pub key: String,
    /// The file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The function.
    pub function: Option<String>,
}
