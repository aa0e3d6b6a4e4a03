//! A badge for a README: how many tests are flaky now.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use unflake_core::quantify::curve::share;

use crate::app::App;
use crate::http::answer;
use crate::http::problem::Problem;
use crate::page::words;

pub(crate) async fn badge(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let found = app.ask(|board| Ok(board.flaky()));
    let (text, colour) = match found.await? {
        None => ("no runs".to_owned(), "#6b7280"),
        Some((flaky, all)) => {
            let colour = match share(flaky, all) {
                rate if rate <= 0.0 => "#15803d",
                rate if rate < 0.05 => "#a16207",
                _ => "#b91c1c",
            };
            let counts = [flaky, all].map(|count| words::count(count as u64));
            (counts.join(" of "), colour)
        }
    };
    Ok(answer::text(
        "image/svg+xml",
        draw("flaky tests", &text, colour),
    ))
}

/// A flat badge. Both texts are our own.
fn draw(left: &str, right: &str, colour: &str) -> String {
    let width = |text: &str| 12 + 7 * text.chars().count();
    let (first, second) = (width(left), width(right));
    let total = first + second;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{total}\" height=\"20\" role=\"img\" \
         aria-label=\"{left}: {right}\"><title>{left}: {right}</title>\
         <rect width=\"{first}\" height=\"20\" fill=\"#444\"/>\
         <rect x=\"{first}\" width=\"{second}\" height=\"20\" fill=\"{colour}\"/>\
         <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\" text-anchor=\"middle\">\
         <text x=\"{}\" y=\"14\">{left}</text><text x=\"{}\" y=\"14\">{right}</text></g></svg>",
        first / 2,
        first + second / 2
    )
}
