//! Sessions of browsers: a signed cookie, and a word in each form that only our own pages know.

use unflake_history::dates;

/// The cookie's name.
pub(crate) const COOKIE: &str = "unflake_session";

/// How long a session lasts, in milliseconds: a working day.
const LASTS: i64 = 12 * 3_600_000;

/// Whoever needs no token, because the server asks for none.
const NOBODY: &str = "-";

/// Makes and checks sessions. The key lives as long as the server: after a restart people sign in again.
pub(crate) struct Sessions {
    key: [u8; 32],
}

/// A session that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// The cookie's value.
    pub(crate) value: String,
    /// The digest of the token that it was opened with, if it was.
    pub(crate) token: Option<String>,
}

impl Sessions {
    pub(crate) fn new() -> Self {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the system gives random bytes");
        Self { key }
    }

    /// A new session for whoever has shown this token.
    pub(crate) fn open(&self, token: Option<&str>) -> Session {
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce).expect("the system gives random bytes");
        let nonce = blake3::Hash::from_bytes(nonce).to_hex();
        let until = dates::now() + LASTS;
        let body = format!("{}.{until}.{}", token.unwrap_or(NOBODY), &nonce[..32]);
        let mac = self.sign("session", &body);
        Session {
            value: format!("{body}.{mac}"),
            token: token.map(ToOwned::to_owned),
        }
    }

    /// The session of a cookie, if we made it and its time is not over.
    pub(crate) fn check(&self, value: &str) -> Option<Session> {
        let (body, mac) = value.rsplit_once('.')?;
        let mac = blake3::Hash::from_hex(mac).ok()?;
        // Compared in constant time.
        if mac != blake3::Hash::from_hex(self.sign("session", body)).ok()? {
            return None;
        }
        let mut parts = body.split('.');
        let (token, until) = (parts.next()?, parts.next()?);
        let until: i64 = until.parse().ok()?;
        (dates::now() < until).then(|| Session {
            value: value.to_owned(),
            token: (token != NOBODY).then(|| token.to_owned()),
        })
    }

    /// The word that the forms of a session carry.
    pub(crate) fn form_word(&self, session: &Session) -> String {
        self.sign("form", &session.value)
    }

    fn sign(&self, use_for: &str, text: &str) -> String {
        let text = format!("{use_for} {text}");
        blake3::keyed_hash(&self.key, text.as_bytes())
            .to_hex()
            .to_string()
    }
}

/// The header that sets the cookie.
pub(crate) fn to_header(session: &Session, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    let seconds = LASTS / 1000;
    format!(
        "{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
        session.value
    )
}

/// The header that takes it away.
pub(crate) fn to_end() -> String {
    format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_cookies_are_sessions_and_each_has_a_word_of_its_own() {
        let (ours, theirs) = (Sessions::new(), Sessions::new());
        let session = ours.open(Some("abc"));
        assert_eq!(ours.check(&session.value), Some(session.clone()));
        assert_eq!(theirs.check(&session.value), None);
        for bad in [
            "",
            ".",
            "a.b.c.d",
            &session.value[1..],
            &format!("{}0", session.value),
        ] {
            assert_eq!(ours.check(bad), None, "{bad}");
        }
        let other = ours.open(None);
        assert_eq!(other.token, None);
        assert_ne!(ours.form_word(&session), ours.form_word(&other));
        // The word of the forms is no cookie.
        assert_ne!(
            ours.form_word(&session),
            session.value.rsplit('.').next().unwrap()
        );
    }
}
