//! A difference between passing and failing runs, in words.

use unflake_core::why::difference::{Difference, Part, Spot};
use unflake_core::why::extremes::Extreme;
use unflake_core::why::predicate::{Claim, Held};
use unflake_core::why::trace::Kind;

use crate::view::printable::printable;

/// The most values that are named of several.
const NAMED_VALUES: usize = 3;

/// The difference of failing runs, in a sentence without its full stop.
pub(crate) fn sentence(difference: &Difference) -> String {
    let first = part(
        &difference.spot,
        &claim(
            &difference.spot,
            &difference.claim,
            difference.other.as_ref(),
            difference.holds,
        ),
    );
    match &difference.also {
        Some(Part {
            spot,
            claim: second,
            other,
            holds,
        }) => {
            let second = part(spot, &claim(spot, second, other.as_ref(), *holds));
            format!(
                "{first}, and {second} ({})",
                printable(&spot.site.to_string())
            )
        }
        None => first,
    }
}

/// The words about one call.
fn part(spot: &Spot, what: &str) -> String {
    match spot.site.kind {
        Kind::Leftover => format!(
            "when the test has ended, the number of {} {what}",
            called(spot)
        ),
        Kind::Plain
        | Kind::Time
        | Kind::Randomness
        | Kind::Network
        | Kind::Io
        | Kind::Unordered
        | Kind::Start
        | Kind::Wait
        | Kind::Lock => format!("{} {what}", call(spot)),
    }
}

/// The number of failing and of passing runs with the difference.
pub(crate) fn counts(difference: &Difference, passing: u32, failing: u32) -> String {
    let hits = |held: Held| if difference.holds { held.yes } else { held.no };
    let (odd, usual) = (hits(difference.failing), hits(difference.passing));
    format!("in {odd} of {failing} failing runs, and in {usual} of {passing} passing ones")
}

/// The call of a spot: "the 2nd call of `time.time` by `make_id`".
fn call(spot: &Spot) -> String {
    let extreme = Extreme::read(&spot.site.callee);
    let which = match spot.sequence {
        1 => "the call".to_owned(),
        sequence => format!("the {} call", ordinal(sequence)),
    };
    let caller = if spot.site.caller.is_empty() {
        String::new()
    } else {
        format!(" by `{}`", printable(&spot.site.caller))
    };
    let thread = thread(&spot.thread).map_or_else(String::new, |thread| format!(" in {thread}"));
    match extreme {
        Some((name, extreme)) => format!(
            "the call of `{}`{caller}{thread} with the {} result",
            printable(name),
            extreme.word()
        ),
        None => format!("{which} of `{}`{caller}{thread}", called(spot)),
    }
}

fn called(spot: &Spot) -> String {
    printable(&spot.site.callee)
}

/// A thread in words, by where it was started; `None` for the main thread. The names are those of
/// `docs/trace-format.md`; a name of another kind is shown as it is.
pub(crate) fn thread(name: &str) -> Option<String> {
    if name.is_empty() || name == "main" {
        return None;
    }
    let kinds = [("/python", "Python process"), ("/fork", "forked process")];
    let is_kind = |(end, kind)| name.strip_suffix(end).map(|rest| (rest, kind));
    let (rest, kind) = kinds
        .into_iter()
        .find_map(is_kind)
        .unwrap_or((name, "thread"));
    let own = rest.rsplit_once('#').and_then(|(start, number)| {
        // Before it stands the name of who started it.
        let parent = start.rfind('#').unwrap_or(0);
        let (_, own) = start[parent..].split_once('/')?;
        let own = own
            .strip_prefix("python/")
            .or(own.strip_prefix("fork/"))
            .unwrap_or(own);
        Some((own, number.parse::<u32>().ok()?))
    });
    let Some((own, number)) = own else {
        return Some(format!("the thread {}", printable(name)));
    };
    let which = match number {
        1 => String::new(),
        number => format!("{} ", ordinal(number)),
    };
    let line = own.rsplit_once(':').map(|(_, line)| line);
    let is_place = line.is_some_and(|line| line.parse::<u32>().is_ok());
    let own = printable(own);
    Some(if is_place {
        format!("the {which}{kind} started in {own}")
    } else {
        format!("the {which}task `{own}`")
    })
}

fn claim(spot: &Spot, claim: &Claim, other: Option<&Spot>, is: bool) -> String {
    let number = |value: f64| format!("`{value}`");
    match claim {
        Claim::Reached if is => "is made".to_owned(),
        Claim::Reached => "is not made".to_owned(),
        Claim::Repeats if is => "returns the same as an earlier call at this place".to_owned(),
        Claim::Repeats => "returns a value that no earlier call at this place returned".to_owned(),
        Claim::Returns(value) if spot.site.kind == Kind::Leftover => {
            format!("is {}`{}`", if is { "" } else { "not " }, printable(value))
        }
        Claim::Returns(value) if is => format!("returns `{}`", printable(value)),
        Claim::Returns(value) => format!("does not return `{}`", printable(value)),
        Claim::OneOf { values, .. } => {
            let (shown, rest) = values.split_at(values.len().min(NAMED_VALUES));
            let shown: Vec<String> = shown
                .iter()
                .map(|one| format!("`{}`", printable(one)))
                .collect();
            let more = match rest.len() {
                0 => String::new(),
                rest => format!(" and {rest} more"),
            };
            let which = if is { "one of" } else { "none of" };
            format!("returns {which} {}{more}", shown.join(", "))
        }
        Claim::Contains { element, .. } => {
            let which = if is { "with" } else { "without" };
            format!("returns a collection {which} `{}`", printable(element))
        }
        Claim::AtMost(most) if is => format!("returns {} or less", number(*most)),
        Claim::AtMost(most) => format!("returns more than {}", number(*most)),
        Claim::AtLeast(least) if is => format!("returns {} or more", number(*least)),
        Claim::AtLeast(least) => format!("returns less than {}", number(*least)),
        Claim::Raises(Some(name)) if is => format!("raises {}", printable(name)),
        Claim::Raises(None) if is => "raises an exception".to_owned(),
        Claim::Raises(_) => "raises no exception".to_owned(),
        Claim::Slow(least) if is => format!("takes {} or longer", time(*least)),
        Claim::Slow(least) => format!("takes less than {}", time(*least)),
        Claim::Fast(most) if is => format!("takes {} or less", time(*most)),
        Claim::Fast(most) => format!("takes longer than {}", time(*most)),
        Claim::After(_) => {
            let other = other.map_or_else(String::new, |other| {
                format!("{} ({})", call(other), printable(&other.site.to_string()))
            });
            let order = if is { "only after" } else { "before" };
            format!("begins {order} the end of {other}")
        }
    }
}

/// A time in microseconds, for people.
pub(crate) fn time(microseconds: f64) -> String {
    if microseconds >= 1e6 {
        format!("{:.2} s", microseconds / 1e6)
    } else if microseconds >= 1e3 {
        format!("{:.1} ms", microseconds / 1e3)
    } else {
        format!("{microseconds:.0} µs")
    }
}

fn ordinal(number: u32) -> String {
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_read_well() {
        assert_eq!(thread("main"), None);
        let threads = [
            (
                "main/tests/a.py:12#1",
                "the thread started in tests/a.py:12",
            ),
            ("main/a.py:1#3/b.py:2#2", "the 2nd thread started in b.py:2"),
            (
                "main/a.py:1#1/python",
                "the Python process started in a.py:1",
            ),
            (
                "main/a.py:1#1/python/b.py:2#1/fork",
                "the forked process started in b.py:2",
            ),
            ("main/Jobs.work#2", "the 2nd task `Jobs.work`"),
            ("worker-7", "the thread worker-7"),
        ];
        for (name, words) in threads {
            assert_eq!(thread(name).as_deref(), Some(words));
        }
        let ordinals = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].map(ordinal);
        let expected = [
            "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th",
        ];
        assert_eq!(ordinals, expected);
        assert_eq!(time(12.0), "12 µs");
        assert_eq!(time(51_234.0), "51.2 ms");
        assert_eq!(time(2_500_000.0), "2.50 s");
    }
}
