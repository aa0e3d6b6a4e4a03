//! Which path is answered by what: one table makes the router and the labels of metrics, and a test holds the `OpenAPI`
//! document against it.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, any, on};

use crate::api::{badge, export, health, live, openapi, reports};
use crate::app::App;
use crate::http::body::SMALL;
use crate::http::guard::{Guard, Guarded, guard};
use crate::http::tokens::Role;
use crate::page::{assets, forms, login, trouble};
use crate::{api, page};

/// Nobody is asked for a token.
const OPEN: &[Role] = &[];

const READ: &[Role] = &[Role::Read];
const EDIT: &[Role] = &[Role::Edit];
const REPORT: &[Role] = &[Role::Report];

/// A CI job may look at the quarantine, and at what it sent, with the token that it sends reports with.
const READ_OR_REPORT: &[Role] = &[Role::Read, Role::Report];
const REPORT_OR_READ: &[Role] = &[Role::Report, Role::Read];

/// Whom a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// For programs, by the `OpenAPI` document.
    Api,
    /// For programs, which know it without the document.
    Known,
    /// For programs, which listen to it for as long as they like.
    Stream,
    /// For people.
    Page,
}

/// A path and a method, and what answers them.
struct Route {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the handler knows it, and does not tell")
    )]
    method: Method,
    path: &'static str,
    kind: Kind,
    /// One of these roles is needed.
    needs: &'static [Role],
    handler: MethodRouter<Arc<App>>,
}

impl Route {
    fn new<T: 'static>(
        (method, path): (Method, &'static str),
        kind: Kind,
        needs: &'static [Role],
        handler: impl Handler<T, Arc<App>>,
    ) -> Self {
        let filter = MethodFilter::try_from(method.clone());
        Self {
            handler: on(filter.expect("a method of HTTP"), handler),
            method,
            path,
            kind,
            needs,
        }
    }

    fn get<T: 'static>(
        path: &'static str,
        kind: Kind,
        needs: &'static [Role],
        handler: impl Handler<T, Arc<App>>,
    ) -> Self {
        Self::new((Method::GET, path), kind, needs, handler)
    }

    fn post<T: 'static>(
        path: &'static str,
        kind: Kind,
        needs: &'static [Role],
        handler: impl Handler<T, Arc<App>>,
    ) -> Self {
        Self::new((Method::POST, path), kind, needs, handler)
    }

    fn delete<T: 'static>(
        path: &'static str,
        kind: Kind,
        needs: &'static [Role],
        handler: impl Handler<T, Arc<App>>,
    ) -> Self {
        Self::new((Method::DELETE, path), kind, needs, handler)
    }

    /// What the guard has to know. A path is a label as it stands in the table: what others put into it is not.
    fn guarded(&self) -> Guarded {
        guarded(self.path, self.kind, self.needs)
    }
}

fn guarded(label: &'static str, kind: Kind, needs: &'static [Role]) -> Guarded {
    Guarded {
        label,
        needs,
        show: (kind == Kind::Page).then_some(trouble::show),
        is_endless: kind == Kind::Stream,
    }
}

/// All routes.
fn table() -> Vec<Route> {
    use Kind::{Api, Known, Page, Stream};
    vec![
        Route::get("/api/v1/triage", Api, READ, api::triage),
        Route::get("/api/v1/tests", Api, READ, api::tests),
        Route::get("/api/v1/tests.csv", Api, READ, export::tests),
        Route::get("/api/v1/tests/{number}", Api, READ, api::test),
        Route::get("/api/v1/suite", Api, READ, api::suite),
        Route::get("/api/v1/next", Api, READ, api::next),
        Route::get("/api/v1/quarantine", Api, READ_OR_REPORT, api::quarantine),
        Route::get(
            "/api/v1/quarantine.toml",
            Api,
            READ_OR_REPORT,
            api::quarantine_file,
        ),
        Route::post("/api/v1/quarantine", Api, EDIT, api::admit),
        Route::delete("/api/v1/quarantine/{number}", Api, EDIT, api::leave),
        Route::post("/api/v1/labels", Api, EDIT, api::label),
        Route::post("/api/v1/reports", Api, REPORT, reports::take),
        Route::get(
            "/api/v1/reports/{digest}",
            Api,
            REPORT_OR_READ,
            reports::look,
        ),
        Route::get("/healthz", Api, OPEN, health::healthz),
        Route::get("/badge.svg", Api, READ, badge::badge),
        Route::get("/api/v1/openapi.json", Known, OPEN, openapi::document),
        Route::get("/metrics", Known, READ, health::metrics),
        Route::get("/events", Stream, READ, live::listen),
        Route::get("/", Page, READ, page::triage::show),
        Route::post("/label", Page, EDIT, forms::label),
        Route::get("/tests", Page, READ, page::tests::show),
        Route::get("/tests/{number}", Page, READ, page::test::show),
        Route::get("/suite", Page, READ, page::suite::show),
        Route::get("/next", Page, READ, page::next::show),
        Route::get("/quarantine", Page, READ, page::quarantine::show),
        Route::post("/quarantine", Page, EDIT, forms::admit),
        Route::post("/quarantine/leave", Page, EDIT, forms::leave),
        Route::get("/login", Page, OPEN, login::show),
        Route::post("/login", Page, OPEN, login::enter),
        Route::post("/logout", Page, OPEN, login::end),
        Route::get("/assets/style.css", Page, OPEN, assets::style),
        Route::get("/assets/board.js", Page, OPEN, assets::script),
    ]
}

pub(crate) fn router(app: Arc<App>) -> Router {
    let stand = |route: Guarded| {
        let app = Arc::clone(&app);
        from_fn_with_state(Guard { app, route }, guard)
    };
    let mut router = Router::new();
    for route in table() {
        let guarded = stand(route.guarded());
        router = router.route(route.path, route.handler.layer(guarded));
    }
    let missing = |kind: Kind| any(trouble::missing).layer(stand(guarded("other", kind, OPEN)));
    router
        .route("/api/{*rest}", missing(Kind::Known))
        .fallback_service(missing(Kind::Page).with_state(Arc::clone(&app)))
        .layer(DefaultBodyLimit::max(SMALL))
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_document_describes_these_routes_and_no_others() {
        let document: serde_json::Value = serde_json::from_str(openapi::DOCUMENT).unwrap();
        let mut described = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                described.insert((method.to_uppercase(), path.clone()));
            }
        }
        let routed = table().into_iter().filter(|one| one.kind == Kind::Api);
        let routed = routed.map(|one| (one.method.to_string(), one.path.to_owned()));
        assert_eq!(described, routed.collect());
    }

    #[test]
    fn nobody_writes_without_a_role_but_to_sign_in_and_out() {
        let open = table()
            .into_iter()
            .filter(|one| one.method != Method::GET && one.needs.is_empty());
        let open: Vec<&str> = open.map(|one| one.path).collect();
        assert_eq!(open, ["/login", "/logout"]);
    }
}
