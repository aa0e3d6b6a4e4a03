//! A difference between passing and failing runs, in words.

use unflake_core::why::predicate::{Claim, Held};
use unflake_core::why::ranking::{Difference, Spot};
use unflake_core::why::trace::Kind;

use crate::printable::printable;

/// What failing runs do otherwise, in a sentence without its full stop.
pub(crate) fn sentence(difference: &Difference) -> String {
    let spot = &difference.spot;
    let what = claim(difference);
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

/// In how many runs it is so.
pub(crate) fn counts(difference: &Difference, passing: u32, failing: u32) -> String {
    let hits = |held: Held| if difference.holds { held.yes } else { held.no };
    let (odd, usual) = (hits(difference.failing), hits(difference.passing));
    format!("in {odd} of {failing} failing runs, and in {usual} of {passing} passing ones")
}

/// The call of a spot: "the 2nd call of `time.time` by `make_id`".
fn call(spot: &Spot) -> String {
    let which = match spot.sequence {
        1 => "the call".to_owned(),
        sequence => format!("the {} call", ordinal(sequence)),
    };
    let caller = if spot.site.caller.is_empty() {
        String::new()
    } else {
        format!(" by `{}`", printable(&spot.site.caller))
    };
    let thread = if spot.thread.is_empty() || spot.thread == "main" {
        String::new()
    } else {
        format!(" in the thread {}", printable(&spot.thread))
    };
    format!("{which} of `{}`{caller}{thread}", called(spot))
}

fn called(spot: &Spot) -> String {
    printable(&spot.site.callee)
}

fn claim(difference: &Difference) -> String {
    let is = difference.holds;
    let number = |value: f64| format!("`{value}`");
    match &difference.claim {
        Claim::Reached if is => "is made".to_owned(),
        Claim::Reached => "is not made".to_owned(),
        Claim::Repeats if is => "returns what an earlier call there has returned".to_owned(),
        Claim::Repeats => "returns something that no earlier call there has returned".to_owned(),
        Claim::Returns(value) if difference.spot.site.kind == Kind::Leftover => {
            format!("is {}`{}`", if is { "" } else { "not " }, printable(value))
        }
        Claim::Returns(value) if is => format!("returns `{}`", printable(value)),
        Claim::Returns(value) => format!("does not return `{}`", printable(value)),
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
            let other = difference.other.as_ref();
            let other = other.map_or_else(String::new, |other| {
                format!("{} ({})", call(other), printable(&other.site.to_string()))
            });
            let order = if is { "only after" } else { "before" };
            format!("begins {order} this has ended: {other}")
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
