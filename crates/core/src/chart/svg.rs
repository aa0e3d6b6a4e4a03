//! A chart as SVG: told apart in colour and in grey, light and dark, with the numbers on hover.

use std::fmt::Write;

use super::{Chart, Frame, Line, label, ticks};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 84.0;

/// Lines differ by colour and by dashes.
const DASHES: [&str; 6] = ["", "7 4", "2 3", "10 3 2 3", "4 2", "1 2"];

/// The most points of a line that show their value under the pointer, about.
const HOVERED: usize = 60;

/// The style of charts, for a page that holds several: it stands there in place of the style inside each file.
pub const STYLE: &str = ".chart{font:13px system-ui,sans-serif;--ink:#222;--faint:#ddd;--paper:#fff}\
.l0{--line:#0057b8}.l1{--line:#c2410c}.l2{--line:#15803d}.l3{--line:#7e22ce}.l4{--line:#a16207}.l5{--line:#0e7490}\
@media(prefers-color-scheme:dark){.chart{--ink:#ddd;--faint:#444;--paper:#161616}\
.l0{--line:#6cb6ff}.l1{--line:#ff9d6c}.l2{--line:#6ddb8f}.l3{--line:#cf9bff}.l4{--line:#e3c04d}.l5{--line:#5fd4e6}}\
.chart text{fill:var(--ink)}.grid{stroke:var(--faint)}.axis,.mark{stroke:var(--ink)}.mark{stroke-dasharray:3 3}\
.line{fill:none;stroke:var(--line);stroke-width:2}.dot{fill:var(--line);fill-opacity:0}.dot:hover{fill-opacity:1}";

/// The chart as a file of its own.
pub fn write(chart: &Chart) -> String {
    draw(chart, &format!("<style>{STYLE}</style>\n"))
}

/// The chart as a part of a page that has [`STYLE`].
pub fn write_inline(chart: &Chart) -> String {
    draw(chart, "")
}

fn draw(chart: &Chart, style: &str) -> String {
    let frame = chart.frame();
    let mut svg = format!(
        "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n{style}\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"var(--paper)\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-weight=\"600\">{title}</text>\n",
        title = escape(&chart.title)
    );
    write_axes(&mut svg, chart, frame);
    for (number, line) in chart.lines.iter().enumerate() {
        write_line(&mut svg, line, number, frame, chart);
    }
    svg.push_str("</svg>\n");
    svg
}

fn write_axes(svg: &mut String, chart: &Chart, frame: Frame) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for tick in ticks(frame.bottom, frame.top, 5.0) {
        let (y, text) = (down(frame, tick), label(tick, chart.is_share));
        push(
            svg,
            &format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                LEFT - 8.0,
                y + 4.0
            ),
        );
    }
    for tick in ticks(frame.left, frame.right, 8.0) {
        let (x, text) = (over(frame, tick), label(tick, false));
        push(
            svg,
            &format!(
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                bottom + 18.0
            ),
        );
    }
    for (at, name) in &chart.marks {
        let x = over(frame, *at);
        // A name that would leave the picture stands on the other side.
        let (side, anchor) = if x > WIDTH * 0.75 {
            (-4.0, "end")
        } else {
            (4.0, "start")
        };
        push(
            svg,
            &format!(
                "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\" text-anchor=\"{anchor}\">{}</text>",
                x + side,
                TOP + 10.0,
                escape(name)
            ),
        );
    }
    push(
        svg,
        &format!(
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            bottom + 38.0,
            escape(&chart.across),
            f64::midpoint(TOP, bottom),
            escape(&chart.up)
        ),
    );
}

fn write_line(svg: &mut String, line: &Line, number: usize, frame: Frame, chart: &Chart) {
    let (class, dash) = (number % DASHES.len(), DASHES[number % DASHES.len()]);
    let points: Vec<&(f64, f64)> = line
        .points
        .iter()
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    let mut path = String::new();
    for (x, y) in &points {
        // Writing into a string cannot fail.
        let _ = write!(path, "{:.1},{:.1} ", over(frame, *x), down(frame, *y));
    }
    let (path, name) = (path.trim_end(), escape(&line.name));
    push(
        svg,
        &format!(
            "<g class=\"l{class}\"><polyline class=\"line\" stroke-dasharray=\"{dash}\" points=\"{path}\"/>"
        ),
    );
    let step = points.len().div_ceil(HOVERED).max(1);
    for (x, y) in points.iter().copied().step_by(step) {
        push(
            svg,
            &format!(
                "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"><title>{name}: {} at {}</title></circle>",
                over(frame, *x),
                down(frame, *y),
                value(*y, chart.is_share),
                label(*x, false)
            ),
        );
    }
    let (x, y) = (LEFT + 170.0 * to_float(number), HEIGHT - 16.0);
    push(
        svg,
        &format!(
            "<line class=\"line\" stroke-dasharray=\"{dash}\" x1=\"{x}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\
         <text x=\"{}\" y=\"{y}\">{name}</text></g>",
            x + 28.0,
            y - 4.0,
            y - 4.0,
            x + 34.0
        ),
    );
}

fn value(value: f64, is_share: bool) -> String {
    if is_share {
        format!("{:.1} %", value * 100.0)
    } else {
        label(value, false)
    }
}

fn over(frame: Frame, x: f64) -> f64 {
    LEFT + (x - frame.left) / (frame.right - frame.left) * (WIDTH - LEFT - RIGHT)
}

fn down(frame: Frame, y: f64) -> f64 {
    let height = HEIGHT - TOP - BOTTOM;
    HEIGHT - BOTTOM - (y - frame.bottom) / (frame.top - frame.bottom) * height
}

fn push(svg: &mut String, text: &str) {
    svg.push_str(text);
    svg.push('\n');
}

#[expect(clippy::cast_precision_loss, reason = "a chart has few lines")]
fn to_float(number: usize) -> f64 {
    number as f64
}

/// Names come from other people.
fn escape(text: &str) -> String {
    let mut safe = String::new();
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other if other.is_control() => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_its_names_lines_and_marks_and_nothing_of_others_gets_through() {
        let chart = Chart {
            title: "<b>rates</b>".to_owned(),
            across: "day".to_owned(),
            up: "share".to_owned(),
            lines: vec![Line {
                name: "A&B\u{1b}".to_owned(),
                points: vec![(0.0, 0.0), (10.0, 1.0), (11.0, f64::NAN)],
            }],
            marks: vec![(5.0, "half".to_owned())],
            is_share: true,
        };
        let svg = write(&chart);
        assert!(svg.contains("&lt;b&gt;rates") && !svg.contains("<b>") && !svg.contains('\u{1b}'));
        assert!(svg.contains("points=\"70.0,336.0 736.0,44.0\""), "{svg}");
        assert!(svg.contains("A&amp;B") && svg.contains("100.0 % at 10") && svg.contains("half"));
    }
}
