//! Pieces that several pages have.

use maud::{Markup, PreEscaped, html};

use crate::http::guard::Who;
use crate::page::words;

/// The word that forms carry.
pub(crate) fn form_word(who: &Who) -> Markup {
    html! {
        input type="hidden" name="word" value=(who.form_word.as_deref().unwrap_or_default());
    }
}

/// A test's name as a link to its page. It may be broken after what separates its parts.
pub(crate) fn test_link(number: u32, name: &str, copy: u32) -> Markup {
    html! {
        a.test href={ "/tests/" (number) } { (breakable(name)) }
        @if copy > 0 { span.faint { " (namesake " (copy + 1) ")" } }
    }
}

/// A name with places where a line may end.
pub(crate) fn breakable(name: &str) -> Markup {
    let safe = words::escape(name);
    let open = safe
        .replace("::", "::<wbr>")
        .replace('/', "/<wbr>")
        .replace('.', ".<wbr>")
        .replace('_', "_<wbr>");
    PreEscaped(open)
}

/// A badge.
pub(crate) fn tag(class: &str, text: &str) -> Markup {
    html! { span class={ "tag " (class) } { (text) } }
}

/// A bug as a link, if it is an address.
pub(crate) fn bug(text: &str) -> Markup {
    let is_address = text.starts_with("https://") || text.starts_with("http://");
    html! {
        @if is_address {
            a href=(text) rel="noreferrer noopener" { (words::visible(text)) }
        } @else {
            (words::visible(text))
        }
    }
}

/// A rate with its interval.
pub(crate) fn rate(rate: Option<f64>, low: f64, high: f64) -> Markup {
    html! {
        @if rate.is_some() {
            span.rate { (words::percent_or_dash(rate)) }
            " "
            span.faint.interval title="95 % interval" { (interval(low, high)) }
        } @else { span.faint { "–" } }
    }
}

fn interval(low: f64, high: f64) -> String {
    format!("{:.1} – {:.1}", low * 100.0, high * 100.0)
}

/// What stands where there is nothing yet.
pub(crate) fn empty(title: &str, text: &Markup) -> Markup {
    html! {
        div.empty {
            h2 { (title) }
            p { (text) }
        }
    }
}

/// How to get runs into a history that has none.
pub(crate) fn no_runs(who: &Who) -> Markup {
    empty(
        "No runs yet",
        &html! {
            "Send a report, and it shows up here:"
            pre { code { "unflake record --to " (who.address) " build/reports" } }
            "Or let " code { "unflake run" } " add its own runs to this history."
        },
    )
}
