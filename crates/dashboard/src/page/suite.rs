//! The page of the suite, or of a release.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, PreEscaped, html};
use unflake_core::chart::svg;

use super::frame::frame;
use super::parts;
use crate::app::App;
use crate::board::suite::Suite;
use crate::http::answer::Page;
use crate::http::guard::{Asked, Who};
use crate::http::problem::Problem;
use crate::http::query::Fields;
use crate::page::words;

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    fields: Fields,
) -> Result<Page, Problem> {
    let release = fields.text("release")?.map(ToOwned::to_owned);
    let found = app.ask(move |board| board.suite(release.as_deref()));
    Ok(Page(page(&who, &*found.await?)))
}

fn page(who: &Who, suite: &Suite) -> Markup {
    let title = match &suite.release {
        Some(release) => format!("Release {}", words::visible(release)),
        None => "Suite".to_owned(),
    };
    let main = html! {
        div.title { h1 { (title) } }
        @if let Some(period) = &suite.period {
            p.faint { (words::visible(period)) }
            @if !suite.releases.is_empty() { (choice(suite)) }
            (facts(suite))
            div.charts { @for chart in &suite.charts { (PreEscaped(svg::write_inline(chart))) } }
        } @else { (parts::no_runs(who)) }
    };
    frame(who, &title, "/suite", &main)
}

fn choice(suite: &Suite) -> Markup {
    html! {
        form.filter method="get" action="/suite" {
            label {
                span { "Compare" }
                select name="release" {
                    option value="" { "the last days with those before" }
                    @for name in &suite.releases {
                        option value=(name) selected[suite.release.as_ref() == Some(name)] {
                            "release " (words::visible(name)) " with the one before"
                        }
                    }
                }
            }
            button { "Show" }
        }
    }
}

fn facts(suite: &Suite) -> Markup {
    let (summary, builds) = (&suite.summary, suite.builds);
    html! {
        dl.facts {
            div { dt { "Tests" } dd { (words::count(summary.tests as u64)) " " span.faint { (words::count(summary.runs)) " runs" } } }
            div { dt { "Never flaked" } dd { (words::percent(summary.never_flaky)) } }
            div { dt { "Median flake rate" } dd { (words::percent_or_dash(summary.median_rate)) } }
            div { dt { "Run often enough" } dd { (words::percent(summary.confident)) " " span.faint { "for 95 % confidence" } } }
            div { dt { "Failed" } dd { (words::plural(summary.failed, "test", "tests")) } }
            div { dt { "Became unstable" } dd { a href="/tests?only=unstable" { (words::plural(summary.unstable, "test", "tests")) } } }
            div { dt { "Saved from investigation" } dd { (words::percent(summary.saved)) " " span.faint { "of those that failed" } } }
            div { dt { "Builds hit by flaky tests" } dd {
                @if let Some(share) = builds.share {
                    (words::percent(share)) " "
                    span.faint { (words::count(builds.hit_by_flaky_tests as u64)) " of " (words::count(builds.builds as u64)) }
                } @else { span.faint { "no run names a job or a revision" } }
            } }
        }
    }
}
