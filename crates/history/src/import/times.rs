//! Times as files write them.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// From this number on a time without a unit counts milliseconds: as seconds it would be in the year 5138.
const LARGEST_SECONDS: i64 = 100_000_000_000;

/// Milliseconds since 1970 of a date and time with or without an offset, a date, or seconds or milliseconds
/// since 1970. A time without an offset is taken for UTC.
pub fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return from_number(number);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_millisecond());
    }
    let moment = match text.parse::<DateTime>() {
        Ok(moment) => moment,
        Err(_) => text.parse::<Date>().ok()?.at(0, 0, 0, 0),
    };
    let moment = moment.to_zoned(TimeZone::UTC).ok()?;
    Some(moment.timestamp().as_millisecond())
}

/// Reads many times, of which most are of the same day as the one before.
#[derive(Default)]
pub(super) struct Clock {
    /// A day as it was written, and its milliseconds since 1970.
    day: Option<([u8; 10], i64)>,
}

impl Clock {
    /// As [`parse_time`].
    pub(super) fn parse(&mut self, text: &[u8]) -> Option<i64> {
        if let (Some((day, start)), Some((date, rest))) = (self.day, text.split_first_chunk()) {
            let time = (day == *date).then(|| time_of_day(rest)).flatten();
            if let Some(time) = time {
                return Some(start + time);
            }
        }
        let time = parse_time(std::str::from_utf8(text).ok()?)?;
        if let Some((date, rest)) = text.split_first_chunk() {
            self.day = time_of_day(rest).map(|since| (*date, time - since));
        }
        Some(time)
    }
}

/// The milliseconds of `T12:30:00Z`, with `T` or a space, and `Z` or nothing.
fn time_of_day(text: &[u8]) -> Option<i64> {
    let text = text.strip_suffix(b"Z").unwrap_or(text);
    let [b'T' | b' ', h1, h2, b':', m1, m2, b':', s1, s2] = text else {
        return None;
    };
    let digits = [h1, h2, m1, m2, s1, s2];
    if !digits.iter().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number = |tens: &u8, ones: &u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
    let (hour, minute, second) = (number(h1, h2), number(m1, m2), number(s1, s2));
    (hour < 24 && minute < 60 && second < 60).then_some((hour * 3600 + minute * 60 + second) * 1000)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the number is checked to be small"
)]
fn from_number(number: f64) -> Option<i64> {
    if !number.is_finite() || number.abs() > 1e15 {
        return None;
    }
    let is_milliseconds = number.abs() as i64 > LARGEST_SECONDS;
    Some(if is_milliseconds {
        number as i64
    } else {
        (number * 1000.0).round() as i64
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        let noon = Some(1_555_329_600_000);
        for text in [
            "2019-04-15T12:00:00Z",
            "2019-04-15 12:00:00",
            "2019-04-15T12:00:00",
            "2019-04-15T14:00:00+02:00",
            "2019-04-15T12:00:00.000000+00:00",
            " 2019-04-15T12:00 ",
            "1555329600",
            "1555329600000",
            "1555329600.0",
        ] {
            assert_eq!(parse_time(text), noon, "{text}");
        }
        assert_eq!(parse_time("2019-04-15"), Some(1_555_286_400_000));
        assert_eq!(parse_time("2020-02-29T00:00:00Z"), Some(1_582_934_400_000));
        for bad in [
            "",
            "yesterday",
            "2019-02-30T00:00:00",
            "2019-13-01",
            "NaN",
            "inf",
            "1e300",
        ] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn the_quick_way_agrees_with_the_calendar(
            seconds in prop::collection::vec(0_i64..4_000_000_000, 1..5),
            near in 0_i64..200_000,
        ) {
            let mut clock = Clock::default();
            for second in seconds.iter().flat_map(|second| [*second, second + near]) {
                let time = Timestamp::from_second(second).unwrap();
                for form in ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00"] {
                    let text = time.strftime(form).to_string();
                    prop_assert_eq!(clock.parse(text.as_bytes()), Some(second * 1000), "{}", text);
                }
            }
        }
    }

    #[test]
    fn a_day_that_was_seen_does_not_make_a_bad_time_good() {
        let mut clock = Clock::default();
        assert_eq!(
            clock.parse(b"2019-04-15T12:00:00Z"),
            Some(1_555_329_600_000)
        );
        for bad in [
            "2019-04-15T24:00:00Z",
            "2019-04-15T1a:00:00",
            "2019-04-15T12:00:00ZZ",
        ] {
            assert_eq!(clock.parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
