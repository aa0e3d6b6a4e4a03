//! Bodies of requests: forms that people fill in, and JSON that programs send.

use std::collections::BTreeMap;

use axum::Form;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::problem::Problem;
use super::query::Fields;

/// The largest form or JSON body, in bytes. Reports have a limit of their own.
pub(crate) const SMALL: usize = 64 * 1024;

/// The fields of a form.
pub(crate) struct Filled(pub(crate) Fields);

impl<S: Send + Sync> FromRequest<S> for Filled {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let found = Form::<BTreeMap<String, String>>::from_request(request, state).await;
        let Form(fields) =
            found.map_err(|rejection| refused(rejection.status(), rejection.body_text()))?;
        Ok(Self(Fields(fields)))
    }
}

/// An object that a program sent.
pub(crate) struct Sent<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Sent<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let found = Bytes::from_request(request, state).await;
        let bytes =
            found.map_err(|rejection| refused(rejection.status(), rejection.body_text()))?;
        let value = serde_json::from_slice(&bytes);
        value
            .map(Self)
            .map_err(|error| Problem::Bad(format!("the body is not as it should be: {error}")))
    }
}

fn refused(status: axum::http::StatusCode, text: String) -> Problem {
    if status == axum::http::StatusCode::PAYLOAD_TOO_LARGE {
        Problem::TooLarge(SMALL)
    } else {
        Problem::Bad(text)
    }
}
