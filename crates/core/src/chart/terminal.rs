//! A chart in characters, for a terminal: each line has its own mark.

use super::{Chart, label};

/// The marks of the lines, in their order.
const MARKS: [char; 6] = ['•', '+', 'x', 'o', '*', '#'];

/// The chart in a box of this width and height in characters, without a newline at the end.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places in a terminal are small numbers above 0"
)]
pub fn write(chart: &Chart, width: usize, height: usize) -> String {
    let (width, height) = (width.max(20), height.max(4));
    let frame = chart.frame();
    let margin = 8;
    let columns = width - margin - 1;
    let mut cells = vec![vec![' '; columns]; height];
    for (line, mark) in chart.lines.iter().zip(MARKS.into_iter().cycle()) {
        let rows = (0..columns).map(|column| {
            let x = frame.left + (frame.right - frame.left) * column as f64 / (columns - 1) as f64;
            // The last point that is not to the right of this column: lines are steps.
            let at = line.points.partition_point(|point| point.0 <= x);
            let (_, y) = line.points[at.checked_sub(1)?];
            let share = (y - frame.bottom) / (frame.top - frame.bottom);
            let row = (1.0 - share.clamp(0.0, 1.0)) * (height - 1) as f64;
            share.is_finite().then(|| row.round() as usize)
        });
        for (column, row) in rows.enumerate() {
            if let Some(row) = row {
                cells[row][column] = mark;
            }
        }
    }
    let mut lines = vec![chart.title.clone()];
    for (row, cells) in cells.iter().enumerate() {
        let is_labelled = row % 4 == 0 || row + 1 == height;
        let share = 1.0 - row as f64 / (height - 1) as f64;
        let value = frame.bottom + (frame.top - frame.bottom) * share;
        let value = is_labelled.then(|| label(value, chart.is_share));
        let (value, cells) = (value.unwrap_or_default(), String::from_iter(cells));
        lines.push(format!("{value:>margin$}│{}", cells.trim_end()));
    }
    let (left, right) = (label(frame.left, false), label(frame.right, false));
    let middle = columns.saturating_sub(left.chars().count() + right.chars().count());
    let across: String = chart
        .across
        .chars()
        .take(middle.saturating_sub(2))
        .collect();
    lines.push(format!("{:margin$}└{}", "", "─".repeat(columns)));
    lines.push(format!("{:margin$} {left}{across:^middle$}{right}", ""));
    if chart.lines.len() > 1 {
        let names = chart.lines.iter().zip(MARKS.into_iter().cycle());
        let names = names.map(|(line, mark)| format!("{mark} {}", line.name));
        let names: Vec<String> = names.collect();
        lines.push(format!("{:margin$} {}", "", names.join("   ")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Line;

    #[test]
    fn a_line_goes_up_from_the_left_to_the_right() {
        let chart = Chart {
            title: "share".to_owned(),
            across: "day".to_owned(),
            up: String::new(),
            lines: vec![Line {
                name: "A".to_owned(),
                points: (0..=10)
                    .map(|at| (f64::from(at), f64::from(at) / 10.0))
                    .collect(),
            }],
            marks: Vec::new(),
            is_share: true,
        };
        let text = write(&chart, 30, 5);
        let expected = "share
   100 %│                  •••
        │              ••••
        │        ••••••
        │    ••••
     0 %│••••
        └─────────────────────
         0       day        10";
        assert_eq!(text, expected, "\n{text}");
    }
}
