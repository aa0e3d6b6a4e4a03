//! Days as people write them.

use jiff::civil::Date;

/// The first day of the epoch.
fn epoch() -> Date {
    jiff::civil::date(1970, 1, 1)
}

/// `2019-04-15` for a number of days since 1970.
pub fn to_text(day: i32) -> String {
    let span = jiff::Span::new().try_days(day);
    let date = span.and_then(|span| epoch().checked_add(span));
    // A day that no calendar has can only come from a damaged store; its number says more than nothing.
    date.map_or_else(|_| format!("day {day}"), |date| date.to_string())
}

/// The number of days since 1970 of `2019-04-15`; `None` if it is no date.
pub fn parse(text: &str) -> Option<i32> {
    let date: Date = text.trim().parse().ok()?;
    Some(epoch().until(date).ok()?.get_days())
}

/// The day of a time in milliseconds since 1970, in UTC.
pub fn day_of(time: i64) -> i32 {
    i32::try_from(time.div_euclid(86_400_000)).unwrap_or(i32::MAX)
}

/// The present, in milliseconds since 1970.
pub fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_written_and_read() {
        assert_eq!(to_text(0), "1970-01-01");
        assert_eq!(to_text(17_000), "2016-07-18");
        assert_eq!(parse("2016-07-18"), Some(17_000));
        assert!(parse("yesterday").is_none());
        assert_eq!(to_text(i32::MAX), "day 2147483647");
    }
}
