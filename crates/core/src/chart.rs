//! A plot as data, and as text: lines over two axes. Whoever made the numbers says what they mean.

pub mod svg;
pub mod terminal;

/// A plot of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What stands on the horizontal axis.
    pub across: String,
    /// What stands on the vertical axis.
    pub up: String,
    /// The lines.
    pub lines: Vec<Line>,
    /// Points on the horizontal axis that are marked, with their names.
    pub marks: Vec<(f64, String)>,
    /// Whether the vertical axis is a share: it ends at 100 %, or lower if all points lie low.
    pub is_share: bool,
}

/// One line, its points from left to right.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// The smallest and the largest value of both axes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Frame {
    left: f64,
    right: f64,
    bottom: f64,
    top: f64,
}

/// The values at which the axis of a share can end, in rising order.
const SHARES: [f64; 5] = [0.05, 0.1, 0.2, 0.5, 1.0];

impl Chart {
    /// The frame around all points, never empty; the vertical axis has 0 in it.
    fn frame(&self) -> Frame {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let points = points.filter(|(x, y)| x.is_finite() && y.is_finite());
        let mut frame = Frame {
            left: f64::INFINITY,
            right: f64::NEG_INFINITY,
            bottom: 0.0,
            top: 0.0,
        };
        for (x, y) in points {
            frame.left = frame.left.min(*x);
            frame.right = frame.right.max(*x);
            frame.bottom = frame.bottom.min(*y);
            frame.top = frame.top.max(*y);
        }
        if frame.left >= frame.right {
            let at = if frame.left.is_finite() {
                frame.left
            } else {
                0.0
            };
            (frame.left, frame.right) = (at, at + 1.0);
        }
        if self.is_share {
            let round = SHARES.into_iter().find(|share| *share >= frame.top);
            frame.top = round.unwrap_or(1.0);
        }
        if frame.bottom >= frame.top {
            frame.top = frame.bottom + 1.0;
        }
        frame
    }
}

/// Round numbers that divide a range into about `parts` parts.
fn ticks(low: f64, high: f64, parts: f64) -> Vec<f64> {
    let rough = (high - low) / parts;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(power * 10.0);
    let mut ticks = Vec::new();
    let mut at = (low / step).ceil() * step;
    while at <= high + step * 1e-9 && ticks.len() < 50 {
        ticks.push(at);
        at += step;
    }
    ticks
}

/// A number on an axis.
fn label(value: f64, is_share: bool) -> String {
    if is_share {
        return format!("{:.0} %", value * 100.0);
    }
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let close = |found: &[f64], wanted: &[f64]| {
            found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted)
                    .all(|(one, other)| (one - other).abs() < 1e-9)
        };
        assert!(close(&ticks(0.0, 1.0, 4.0), &[0.0, 0.25, 0.5, 0.75, 1.0]));
        assert!(close(&ticks(3.0, 181.0, 5.0), &[50.0, 100.0, 150.0]));
        assert_eq!(label(0.25, true), "25 %");
        assert_eq!(label(50.0, false), "50");
        assert_eq!(label(0.05, false), "0.05");
    }

    #[test]
    fn the_axis_of_small_shares_ends_at_a_round_one_above_them() {
        let top = |share: f64| {
            let line = Line {
                name: String::new(),
                points: vec![(0.0, 0.0), (1.0, share)],
            };
            let chart = Chart {
                title: String::new(),
                across: String::new(),
                up: String::new(),
                lines: vec![line],
                marks: Vec::new(),
                is_share: true,
            };
            chart.frame().top
        };
        for (share, end) in [
            (0.0, 0.05),
            (0.05, 0.05),
            (0.08, 0.1),
            (0.3, 0.5),
            (0.6, 1.0),
            (1.0, 1.0),
        ] {
            assert!((top(share) - end).abs() < 1e-9, "{share}");
        }
    }

    #[test]
    fn a_frame_is_never_empty() {
        let chart = Chart {
            title: String::new(),
            across: String::new(),
            up: String::new(),
            lines: vec![Line {
                name: String::new(),
                points: vec![(f64::NAN, 3.0)],
            }],
            marks: Vec::new(),
            is_share: false,
        };
        let frame = chart.frame();
        assert!(frame.left < frame.right && frame.bottom < frame.top);
    }
}
