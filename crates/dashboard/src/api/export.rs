//! Lists as tables for other programs. What tests are called is other people's text, also to a spreadsheet.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_DISPOSITION;
use axum::response::Response;

use crate::app::App;
use crate::board::tests_list::{Row, Wanted};
use crate::http::answer;
use crate::http::problem::Problem;
use crate::http::query::Fields;

pub(crate) async fn tests(
    State(app): State<Arc<App>>,
    fields: Fields,
) -> Result<Response, Problem> {
    let wanted = Wanted::parse(&fields)?;
    let found = app.ask(move |board| {
        let mut text = HEAD.to_owned();
        board.visit_tests(&wanted, |row| text += &line(row));
        Ok(text)
    });
    let mut response = answer::text("text/csv; charset=utf-8", found.await?);
    let name = HeaderValue::from_static("attachment; filename=\"tests.csv\"");
    response.headers_mut().insert(CONTENT_DISPOSITION, name);
    Ok(response)
}

const HEAD: &str =
    "test,runs,flaky_failures,rate,low,high,stable_rate,last_flake,owner,quarantined\r\n";

fn line(row: &Row) -> String {
    let number = |value: Option<f64>| value.map(|one| format!("{one:.6}")).unwrap_or_default();
    let fields = [
        cell(&row.test),
        row.runs.to_string(),
        row.flaky_failures.to_string(),
        number(row.rate),
        number(Some(row.low)),
        number(Some(row.high)),
        number(row.stable_rate),
        row.last_flake.clone().unwrap_or_default(),
        cell(&row.owner),
        row.is_quarantined.to_string(),
    ];
    fields.join(",") + "\r\n"
}

/// A cell that no spreadsheet takes for a formula, and that nothing in it can end.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guard = if is_formula { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn a_name_is_never_a_formula() {
        assert_eq!(cell("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        for start in ['=', '+', '-', '@', '\t', '\r'] {
            assert!(cell(&format!("{start}1")).starts_with("\"'"), "{start:?}");
        }
        assert_eq!(cell("a,b\n"), "\"a,b\n\"");
    }
}
