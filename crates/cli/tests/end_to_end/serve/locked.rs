//! Who may do what: tokens, roles, other sites' pages, and names that only look like this machine.

use std::process::Command;

use super::{Server, agent, junit, new_store};

fn token(file: &std::path::Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unflake"));
    command
        .arg("token")
        .args(arguments)
        .arg("--tokens")
        .arg(file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn off_this_machine_it_does_not_start_without_tokens() {
    let (folder, store) = new_store();
    let serve = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_unflake"));
        command
            .args(["serve", "--listen", "0.0.0.0:0", "--store"])
            .arg(&store)
            .args(more);
        command.output().unwrap()
    };
    let output = serve(&[]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("unflake token add"), "{error}");
    let file = folder.path().join("empty.toml");
    std::fs::write(&file, "").unwrap();
    let output = serve(&["--tokens", file.to_str().unwrap()]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "an empty file lets nobody in"
    );
}

#[test]
fn a_token_does_what_its_role_says_until_it_is_revoked() {
    let (folder, store) = new_store();
    let file = folder.path().join("tokens.toml");
    let ci = token(&file, &["add", "ci", "--role", "report"]);
    let reader = token(&file, &["add", "bob", "--role", "read"]);
    let editor = token(&file, &["add", "ann", "--role", "edit"]);
    let server = Server::start(&store, &["--tokens", file.to_str().unwrap()]);
    let xml = junit("2026-06-01T00:00:00", &[("one", Some("no"))]);
    let send = |token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("content-type", "application/xml"),
            ("authorization", bearer.as_str()),
        ];
        server.post_with("/api/v1/reports", &xml, &headers).0
    };
    assert_eq!(
        server.post("/api/v1/reports", "application/xml", &xml).0,
        401
    );
    assert_eq!(send("unflake_wrong"), 401);
    assert_eq!(send(&reader), 403);
    assert_eq!(send(&ci), 201);
    assert_eq!(server.get_as("/api/v1/triage", Some(&ci)).0, 403);
    assert_eq!(server.get_as("/api/v1/triage", Some(&reader)).0, 200);
    assert_eq!(server.get_as("/api/v1/quarantine.toml", Some(&ci)).0, 200);
    assert_eq!(server.get("/api/v1/triage").0, 401);
    assert_eq!(server.get("/healthz").0, 200);
    assert_eq!(server.get("/metrics").0, 401);
    let (status, page) = server.get("/");
    assert!(status == 401 && page.contains("Sign in") && !page.contains("shop.one"));
    let label = |token: &str| {
        let bearer = format!("Bearer {token}");
        let body = "{\"test\": 1, \"day\": \"2026-06-01\", \"is_fault\": true}";
        let headers = [
            ("content-type", "application/json"),
            ("authorization", bearer.as_str()),
        ];
        server.post_with("/api/v1/labels", body, &headers).0
    };
    assert_eq!(
        (label(&ci), label(&reader), label(&editor)),
        (403, 403, 200)
    );
    token(&file, &["revoke", "ci"]);
    assert_eq!(send(&ci), 401);
}

#[test]
fn a_browser_signs_in_and_only_forms_of_its_session_count() {
    let (folder, store) = new_store();
    let file = folder.path().join("tokens.toml");
    let secret = token(&file, &["add", "ann", "--role", "edit"]);
    let server = Server::start(&store, &["--tokens", file.to_str().unwrap()]);
    let ask = |method: &str, path: &str, cookie: &str, form: &str| {
        let url = format!("{}{path}", server.url);
        let response = if method == "GET" {
            agent().get(url).header("cookie", cookie).call()
        } else {
            agent()
                .post(url)
                .header("cookie", cookie)
                .content_type("application/x-www-form-urlencoded")
                .send(form)
        };
        let mut response = response.unwrap();
        let cookie = response
            .headers()
            .get("set-cookie")
            .map(|value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        (
            status,
            cookie,
            response.body_mut().read_to_string().unwrap(),
        )
    };
    let word_of = |page: &str| {
        let (_, rest) = page.split_once("name=\"word\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let (_, cookie, page) = ask("GET", "/login", "", "");
    let cookie = cookie.unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let before = cookie.split(';').next().unwrap().to_owned();
    let form = format!("word={}&token={secret}", word_of(&page));
    let (status, _, _) = ask(
        "POST",
        "/login",
        &before,
        &format!("word={}&token=x", word_of(&page)),
    );
    assert_eq!(status, 403);
    let (status, _, _) = ask("POST", "/login", "", &form);
    assert_eq!(status, 403, "the form of another session");
    let (status, cookie, _) = ask("POST", "/login", &before, &form);
    assert_eq!(status, 303);
    let inside = cookie.unwrap().split(';').next().unwrap().to_owned();
    let (status, _, page) = ask("GET", "/quarantine", &inside, "");
    assert!(status == 200 && page.contains("Sign out"), "{page}");
    let (status, _, _) = ask("POST", "/quarantine/leave", &inside, "test=1&word=");
    assert_eq!(status, 403);
    let word = word_of(&page);
    let (status, _, _) = ask(
        "POST",
        "/quarantine/leave",
        &inside,
        &format!("test=1&word={word}"),
    );
    assert_eq!(status, 404, "the form counts, and there is no such test");
    token(&file, &["revoke", "ann"]);
    assert_eq!(ask("GET", "/quarantine", &inside, "").0, 401);
}

#[test]
fn other_sites_and_other_names_are_refused() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &[]);
    let xml = junit("2026-06-01T00:00:00", &[("one", None)]);
    let with = |name: &str, value: &str| {
        let headers = [("content-type", "text/plain"), (name, value)];
        server.post_with("/api/v1/reports", &xml, &headers).0
    };
    assert_eq!(with("origin", "https://evil.example"), 403);
    assert_eq!(with("origin", "null"), 403);
    assert_eq!(with("sec-fetch-site", "cross-site"), 403);
    assert_eq!(with("host", "evil.example"), 403);
    assert_eq!(with("origin", &server.url), 201);
    let request = agent()
        .get(format!("{}/", server.url))
        .header("host", "evil.example:7777");
    assert_eq!(request.call().unwrap().status(), 403);
}

#[test]
fn bodies_are_bounded_also_when_they_are_packed() {
    let (_folder, store) = new_store();
    let server = Server::start(&store, &["--max-report", "1"]);
    let large = format!("test,time,verdict\n{}", "a,2026-06-01,ok\n".repeat(100_000));
    assert_eq!(server.post("/api/v1/reports", "text/csv", &large).0, 413);
    let packed = |text: &str| {
        use std::io::Write;
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text.as_bytes()).unwrap();
        packer.finish().unwrap()
    };
    let send = |bytes: Vec<u8>| {
        let request = agent().post(format!("{}/api/v1/reports", server.url));
        let request = request
            .content_type("text/csv")
            .header("content-encoding", "gzip");
        request.send(bytes.as_slice()).unwrap().status().as_u16()
    };
    assert_eq!(
        send(packed(&large)),
        413,
        "a small body that unpacks to a large one"
    );
    assert_eq!(send(packed("test,time,verdict\na,2026-06-01,ok\n")), 201);
    assert_eq!(send(b"no gzip".to_vec()), 422);
    let (status, _) = server.post("/api/v1/labels", "application/json", &" ".repeat(100_000));
    assert_eq!(status, 413);
}
