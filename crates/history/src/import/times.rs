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
    if let Some(time) = parse_plain(text.as_bytes()) {
        return Some(time);
    }
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

/// The commonest form, `2019-04-15T12:30:00Z` with `T` or a space, and `Z` or nothing: ten million of them
/// have to be read quickly.
fn parse_plain(text: &[u8]) -> Option<i64> {
    let text = text.strip_suffix(b"Z").unwrap_or(text);
    let [
        y1,
        y2,
        y3,
        y4,
        b'-',
        m1,
        m2,
        b'-',
        d1,
        d2,
        b'T' | b' ',
        h1,
        h2,
        b':',
        n1,
        n2,
        b':',
        s1,
        s2,
    ] = text
    else {
        return None;
    };
    let number = |digits: &[&u8]| {
        digits.iter().try_fold(0_i64, |number, digit| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + i64::from(**digit - b'0'))
        })
    };
    let (year, month) = (number(&[y1, y2, y3, y4])?, number(&[m1, m2])?);
    let (day, hour) = (number(&[d1, d2])?, number(&[h1, h2])?);
    let (minute, second) = (number(&[n1, n2])?, number(&[s1, s2])?);
    // Days up to 28 exist in every month; for others the calendar is asked.
    if !(1..=12).contains(&month)
        || !(1..=28).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    Some((days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * 1000)
}

/// Counts years from March on, so that the leap day comes last (H. Hinnant, "chrono-compatible low-level
/// date algorithms").
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
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
        fn the_quick_way_agrees_with_the_calendar(second in 0_i64..4_000_000_000) {
            let time = Timestamp::from_second(second).unwrap();
            let text = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            prop_assert_eq!(parse_time(&text), Some(second * 1000));
        }
    }
}
