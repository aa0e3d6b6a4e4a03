//! Delays, and places for them, as driver and runner tell them.

use std::fs;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};
use unflake_core::why::fuzz::{Delays, Moment, Point};

/// The places at which traced code is delayed, and for how long.
#[derive(Clone, Debug, Serialize)]
pub struct WireDelays {
    milliseconds: u32,
    points: Vec<WirePoint>,
}

/// A place for a delay.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WirePoint {
    thread: String,
    file: String,
    line: u32,
    column: u32,
    moment: WireMoment,
    callee: String,
    is_plain: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireMoment {
    Before,
    After,
    Entry,
}

impl From<&Delays> for WireDelays {
    fn from(delays: &Delays) -> Self {
        let wire = |point: &Point| WirePoint {
            thread: point.thread.clone(),
            file: point.file.clone(),
            line: point.line,
            column: point.column,
            moment: match point.moment {
                Moment::Before => WireMoment::Before,
                Moment::After => WireMoment::After,
                Moment::Entry => WireMoment::Entry,
            },
            callee: point.callee.clone(),
            is_plain: point.is_plain,
        };
        Self {
            milliseconds: delays.milliseconds,
            points: delays.points.iter().map(wire).collect(),
        }
    }
}

/// The places that a run has met. A VM that died before its test ended has written none.
pub(crate) fn read_points(path: &Utf8Path) -> Vec<Point> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let wire: Vec<WirePoint> = serde_json::from_str(&text).unwrap_or_default();
    let point = |wire: WirePoint| Point {
        thread: wire.thread,
        file: wire.file,
        line: wire.line,
        column: wire.column,
        moment: match wire.moment {
            WireMoment::Before => Moment::Before,
            WireMoment::After => Moment::After,
            WireMoment::Entry => Moment::Entry,
        },
        callee: wire.callee,
        is_plain: wire.is_plain,
    };
    wire.into_iter().map(point).collect()
}
