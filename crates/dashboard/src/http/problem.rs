//! Why a request is not answered as it was meant, for people and for programs.

use axum::http::StatusCode;
use unflake_history::store::StoreError;

use crate::writer::WriteError;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// The request makes no sense.
    #[error("{0}")]
    Bad(String),
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// Nobody knows who asks.
    #[error("a token is needed for this")]
    Unknown,
    /// Who asks may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The body is larger than is taken.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body is in no format that is read.
    #[error("{0}")]
    Format(String),
    /// It may work later.
    #[error("{0}")]
    Busy(String),
    /// The store does not answer.
    #[error("the history does not answer: {0}")]
    Store(#[from] StoreError),
    /// A bug of ours.
    #[error("this is a bug in unflake")]
    Broken,
}

impl Problem {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Bad(_) => StatusCode::BAD_REQUEST,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Unknown => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Format(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Store(_) | Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What to do about it, for people.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Self::Bad(_) => "Go back and look at what was asked for.",
            Self::NotFound(_) => "It may have been renamed; the list of tests can be searched.",
            Self::Unknown => "Sign in with a token that whoever runs this server gave you.",
            Self::Forbidden(_) => "Ask whoever runs this server for a token with this role.",
            Self::TooLarge(_) | Self::Format(_) => "Look at what was sent.",
            Self::Busy(_) => "Try again in a moment.",
            Self::Store(_) => "Try again; if it stays, look at the server's messages.",
            Self::Broken => "Please report it with what you did.",
        }
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        Self::Busy(error.to_string())
    }
}
