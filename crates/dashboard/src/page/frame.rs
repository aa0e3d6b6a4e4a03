//! What all pages have: head, navigation, foot.

use maud::{DOCTYPE, Markup, html};

use crate::http::guard::Who;
use crate::http::tokens::Role;

/// The pages that can be gone to from everywhere.
const PAGES: [(&str, &str); 5] = [
    ("/", "Triage"),
    ("/tests", "Tests"),
    ("/suite", "Suite"),
    ("/next", "Next"),
    ("/quarantine", "Quarantine"),
];

/// A page with this title. `here` is the navigation's entry that it belongs to.
pub(crate) fn frame(who: &Who, title: &str, here: &str, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · unflake" }
                link rel="stylesheet" href="/assets/style.css";
                link rel="icon" href="data:,";
                script src="/assets/board.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.brand href="/" { "unflake" }
                    @if who.may(Role::Read) {
                        nav aria-label="Pages" {
                            @for (path, name) in PAGES {
                                a href=(path) aria-current=[(path == here).then_some("page")] { (name) }
                            }
                        }
                        form.find action="/tests" role="search" {
                            input type="search" name="query" placeholder="Find a test" aria-label="Find a test";
                        }
                    }
                    @if who.is_signed_in() {
                        form.out method="post" action="/logout" {
                            (super::parts::form_word(who))
                            span.faint { (who.name) }
                            button.plain { "Sign out" }
                        }
                    }
                }
                main #main tabindex="-1" { (main) }
                footer {
                    span { "unflake " (env!("CARGO_PKG_VERSION")) }
                    @if who.may(Role::Read) {
                        a href="/api/v1/openapi.json" { "API" }
                        a href="/metrics" { "Metrics" }
                        span #live.faint role="status" {}
                    }
                    span.faint { "times are in UTC" }
                }
            }
        }
    }
}
