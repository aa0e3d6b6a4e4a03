//! Tables and numbers for people.

use std::fmt::Write;

/// Columns of text, aligned: all to the right but the last.
pub(crate) fn write(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let last = row.len() - 1;
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing into a string cannot fail.
            let _ = if at == last {
                writeln!(text, "{}", format!("  {cell}").trim_end())
            } else {
                write!(text, "  {cell:>width$}")
            };
        }
    }
    text
}

/// `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as `4.2 %`: two digits that count, and never 0 or 100 for what is neither.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value <= 0.0 || value >= 100.0 || (10.0..99.95).contains(&value) {
        return format!("{value:.1} %");
    }
    if value >= 99.95 {
        return "> 99.9 %".to_owned();
    }
    if value >= 1.0 {
        format!("{value:.1} %")
    } else if value >= 0.01 {
        format!("{value:.2} %")
    } else {
        "< 0.01 %".to_owned()
    }
}

/// A p-value.
pub(crate) fn p_value(p: f64) -> String {
    if p >= 0.001 {
        format!("{p:.3}")
    } else if p >= 1e-9 {
        format!("{p:.0e}")
    } else {
        "< 1e-9".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_lie() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
        let shares = [0.0, 0.000_01, 0.0042, 0.042, 0.5, 0.9999, 1.0];
        let texts = [
            "0.0 %", "< 0.01 %", "0.42 %", "4.2 %", "50.0 %", "> 99.9 %", "100.0 %",
        ];
        assert_eq!(shares.map(percent), texts);
        assert_eq!(
            (p_value(0.0115), p_value(1e-7)),
            ("0.011".to_owned(), "1e-7".to_owned())
        );
    }

    #[test]
    fn columns_stand_under_each_other() {
        let rows = [
            vec!["1".to_owned(), "a".to_owned()],
            vec!["22".to_owned(), "bb".to_owned()],
        ];
        assert_eq!(
            write(&["n", "test"], &rows),
            "   n  test\n   1  a\n  22  bb\n"
        );
    }
}
