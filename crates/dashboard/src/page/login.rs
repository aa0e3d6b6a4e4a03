//! Signing in with a token, and out again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{HeaderMap, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::frame::frame;
use super::parts;
use crate::app::App;
use crate::http::answer::{Page, go_to};
use crate::http::body::Filled;
use crate::http::guard::{Asked, Who};
use crate::http::problem::Problem;
use crate::http::session;

pub(crate) async fn show(Asked(who): Asked) -> Page {
    Page(page(&who, None))
}

pub(crate) fn page(who: &Who, trouble: Option<&str>) -> Markup {
    let main = html! {
        div.login {
            h1 { "Sign in" }
            p { "This board asks for a token. Whoever runs the server makes one with " code { "unflake token add" } "." }
            @if let Some(trouble) = trouble { p.trouble role="alert" { (trouble) } }
            form method="post" action="/login" {
                (parts::form_word(who))
                label { span { "Token" } input type="password" name="token" required autocomplete="current-password" autofocus; }
                button { "Sign in" }
            }
        }
    };
    frame(who, "Sign in", "/login", &main)
}

pub(crate) async fn enter(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    headers: HeaderMap,
    Filled(fields): Filled,
) -> Result<Response, Problem> {
    who.check_form(fields.raw("word"))?;
    let file = app.options.tokens.as_ref();
    let Some(token) = file.and_then(|file| file.find(fields.raw("token"))) else {
        let trouble = "This token is not known here, or it was revoked.";
        let page = Page(page(&who, Some(trouble)));
        return Ok((StatusCode::FORBIDDEN, page).into_response());
    };
    let session = app.sessions.open(Some(&token.hash));
    let is_secure = headers
        .get("x-forwarded-proto")
        .is_some_and(|value| value == "https");
    Ok(go_on("/", &session::to_header(&session, is_secure)))
}

pub(crate) async fn end(Asked(who): Asked, Filled(fields): Filled) -> Result<Response, Problem> {
    who.check_form(fields.raw("word"))?;
    Ok(go_on("/login", &session::to_end()))
}

/// Sends a browser on with another cookie.
fn go_on(path: &str, cookie: &str) -> Response {
    let mut response = go_to(path);
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}
