//! The page that says what went wrong.

use axum::http::Uri;
use axum::response::Response;
use maud::{Markup, html};

use super::frame::frame;
use crate::api::Asked;
use crate::http::answer;
use crate::http::guard::Who;
use crate::http::problem::Problem;
use crate::page::words;

pub(crate) fn page(who: &Who, problem: &Problem) -> Markup {
    let main = html! {
        div.empty {
            h1 { (words::visible(&problem.to_string())) }
            p { (problem.advice()) }
            p { a href="/" { "To the board" } }
        }
    };
    frame(who, "Trouble", "", &main)
}

pub(crate) async fn missing(Asked(who): Asked, uri: Uri) -> Response {
    let for_programs = answer::is_for_programs(uri.path());
    let problem = Problem::NotFound("There is no such page".to_owned());
    answer::refuse(&problem, for_programs, &who)
}
