//! Why a request is not answered as it was meant, for people and for programs.

use std::sync::Arc;

use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use unflake_history::store::StoreError;

use super::answer::Json;
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

/// What programs read. The problem goes along with the answer, for those who tell people of it.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let told = Json(json!({ "error": self.to_string() }));
        let mut response = (self.status(), told).into_response();
        let headers = response.headers_mut();
        if matches!(self, Self::Busy(_)) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
        }
        if matches!(self, Self::Unknown) {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        Self::Busy(error.to_string())
    }
}
