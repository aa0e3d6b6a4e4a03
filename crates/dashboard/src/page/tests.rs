//! The list of all tests.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, PreEscaped, html};

use super::frame::frame;
use super::parts;
use super::triage::encode;
use crate::app::App;
use crate::board::tests_list::{Only, Row, TestsList, Wanted};
use crate::http::answer::Page;
use crate::http::guard::{Asked, Who};
use crate::http::problem::Problem;
use crate::http::query::Fields;
use crate::page::plots;
use crate::page::words;

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    fields: Fields,
) -> Result<Page, Problem> {
    let wanted = Wanted::parse(&fields)?;
    let found = app.ask(move |board| Ok(board.tests(&wanted)));
    Ok(Page(page(&who, &found.await?)))
}

fn page(who: &Who, list: &TestsList) -> Markup {
    let main = html! {
        div.title { h1 { "Tests" } }
        @if let Some(period) = &list.period {
            p.faint { (words::visible(period)) }
            (filter(list))
            @if list.tests.is_empty() {
                (parts::empty("No test matches", &html! { a href="/tests" { "Show all " (words::count(list.all as u64)) " tests" } }))
            } @else {
                (table(list))
                (pages(list))
            }
        } @else { (parts::no_runs(who)) }
    };
    frame(who, "Tests", "/tests", &main)
}

fn filter(list: &TestsList) -> Markup {
    html! {
        form.filter method="get" action="/tests" role="search" {
            label { span { "Name" } input type="search" name="query" value=(list.query) placeholder="part of a name, * for anything"; }
            label {
                span { "Which" }
                select name="only" {
                    @for (only, word) in Only::ALL {
                        option value=(word) selected[word == list.only] { (describe(only)) }
                    }
                }
            }
            input type="hidden" name="sort" value=(list.sort);
            button { "Show" }
            span.faint { (words::count(list.matching as u64)) " of " (words::count(list.all as u64)) }
            a.right href={ "/api/v1/tests.csv?" (address(list, list.sort)) } { "CSV" }
        }
    }
}

fn describe(only: Only) -> &'static str {
    match only {
        Only::All => "all tests",
        Only::Flaky => "that flaked",
        Only::Unstable => "that became unstable",
        Only::Quarantined => "in quarantine",
    }
}

fn address(list: &TestsList, sort: &str) -> String {
    format!(
        "query={}&only={}&sort={sort}",
        encode(&list.query),
        list.only
    )
}

fn table(list: &TestsList) -> Markup {
    let head = |sort: &'static str, name: &'static str, class: &'static str| {
        let is_sorted = list.sort == sort;
        let order = if sort == "name" {
            "ascending"
        } else {
            "descending"
        };
        html! {
            th class=(class) scope="col" aria-sort=[is_sorted.then_some(order)] {
                a href={ "/tests?" (address(list, sort)) } { (name) @if is_sorted { span aria-hidden="true" { " ▾" } } }
            }
        }
    };
    html! {
        div.scroll {
            table.list {
                thead {
                    tr {
                        (head("name", "Test", ""))
                        (head("rate", "Flake rate", ""))
                        (head("trend", "Trend", "number"))
                        th scope="col" { "Days" }
                        (head("runs", "Runs", "number"))
                        (head("needed", "Needed", "number"))
                        (head("last-flake", "Last flake", ""))
                        th scope="col" { "Owner" }
                    }
                }
                tbody { @for row in &list.tests { (row_of(row)) } }
            }
        }
    }
}

fn row_of(row: &Row) -> Markup {
    html! {
        tr {
            td.wide data-name="Test" {
                (parts::test_link(row.number, &row.test, row.copy))
                @if row.is_unstable { " " (parts::tag("bad", "unstable")) }
                @if row.is_quarantined { " " (parts::tag("quiet", "quarantined")) }
            }
            td data-name="Flake rate" { (parts::rate(row.rate, row.low, row.high)) }
            td.number data-name="Trend" { (trend(row.trend)) }
            td data-name="Days" { (PreEscaped(plots::spark(&row.days))) }
            td.number data-name="Runs" { (words::count(row.runs)) }
            td.number data-name="Needed" {
                @match row.runs_needed { None => { "–" } Some(0) => { span.good { "enough" } } Some(more) => { (words::count(more)) } }
            }
            td.date data-name="Last flake" { (row.last_flake.as_deref().unwrap_or("–")) }
            td data-name="Owner" { @if row.owner.is_empty() { span.faint { "–" } } @else { (words::visible(&row.owner)) } }
        }
    }
}

fn trend(trend: Option<f64>) -> Markup {
    html! {
        @match trend {
            None => { span.faint { "new" } }
            Some(change) if change.abs() < 0.0005 => { span.faint { "=" } }
            Some(change) if change > 0.0 => { span.worse title="percentage points above the baseline" { "▲ " (format!("{:.1}", change * 100.0)) } }
            Some(change) => { span.good title="percentage points below the baseline" { "▼ " (format!("{:.1}", -change * 100.0)) } }
        }
    }
}

fn pages(list: &TestsList) -> Markup {
    let link = |page: usize| format!("/tests?{}&page={page}", address(list, list.sort));
    html! {
        @if list.pages > 1 {
            nav.pages aria-label="Pages of the list" {
                @if list.page > 1 { a.button href=(link(list.page - 1)) rel="prev" { "‹ Before" } }
                span { "page " (list.page) " of " (words::count(list.pages as u64)) }
                @if list.page < list.pages { a.button href=(link(list.page + 1)) rel="next" { "After ›" } }
            }
        }
    }
}
