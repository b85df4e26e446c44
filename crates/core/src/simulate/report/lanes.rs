//! Charts of several quantities over the same time, one under the other: each in a lane of its own.

use std::fmt::Write as _;

use crate::simulate::report::axis::Axis;
use crate::simulate::report::chart::{Frame, coordinate};

/// A quantity over time, drawn as an area or as a line. Each value holds until the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    /// The look, by a class of the charts' style.
    pub class: &'static str,
    /// The name in the legend; empty if the lane's title says it.
    pub name: &'static str,
    /// True for an area from 0 on, false for a line.
    pub is_area: bool,
    /// Its moments in seconds, and its values.
    pub values: Vec<(f64, f64)>,
}

/// Tracks with one axis in height.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// The quantity, with the unit.
    pub title: &'static str,
    /// Its axis.
    pub axis: Axis,
    /// Its height.
    pub height: f64,
    /// Lines and areas; the first lies under the others.
    pub tracks: Vec<Track>,
}

const LEFT: f64 = 48.0;
const RIGHT: f64 = 16.0;

/// The height of the title above a lane, and of a line of the legend.
const TITLE: f64 = 32.0;
const LEGEND: f64 = 18.0;

/// The width of a letter, roughly, and of what stands before a name in the legend.
const LETTER: f64 = 6.6;
const SAMPLE: f64 = 30.0;

/// Draws lanes with one axis of time, one under the other. Returns the markup and its height.
pub fn draw(width: f64, time: &Axis, lanes: &[Lane]) -> (String, f64) {
    let (mut body, mut drawn) = (String::new(), String::new());
    let first = legend(&mut body, width, lanes) + TITLE;
    let mut frame = Frame {
        left: LEFT,
        top: first,
        right: width - RIGHT,
        bottom: first - TITLE,
    };
    for lane in lanes {
        frame.top = frame.bottom + TITLE;
        frame.bottom = frame.top + lane.height;
        frame.draw_height(&mut body, &lane.axis, lane.title);
        for track in &lane.tracks {
            let values = track.values.iter();
            let places =
                values.map(|(at, value)| (frame.x(time, *at), frame.y(&lane.axis, *value)));
            let path = steps(places, track.is_area.then_some(frame.bottom));
            let _ = write!(drawn, "<path class=\"{}\" d=\"{path}\"/>", track.class);
        }
    }
    // The lines of time go through all lanes.
    frame.top = first;
    let what = format!("time since the first submission ({})", time.unit);
    frame.draw_width(&mut body, time, &what);
    // Areas and lines lie over the grids of all lanes, so they come last.
    (body + &drawn, frame.bottom + 42.0)
}

/// Says what is drawn how, each once, and returns where that ends.
fn legend(out: &mut String, width: f64, lanes: &[Lane]) -> f64 {
    let mut named: Vec<&Track> = Vec::new();
    for track in lanes.iter().flat_map(|lane| &lane.tracks) {
        let is_known = named.iter().any(|known| known.class == track.class);
        if !track.name.is_empty() && !is_known {
            named.push(track);
        }
    }
    let (mut x, mut y) = (LEFT, 0.0);
    for track in named {
        let letters = u16::try_from(track.name.chars().count()).unwrap_or(u16::MAX);
        let room = SAMPLE + LETTER * f64::from(letters) + 10.0;
        if x + room > width && x > LEFT {
            (x, y) = (LEFT, y + LEGEND);
        }
        let (class, name) = (track.class, track.name);
        let (from, text_x) = (coordinate(x), coordinate(x + SAMPLE));
        let [upper, middle, base] = [6.0, 12.0, 16.0].map(|below| coordinate(y + below));
        let sample = if track.is_area {
            format!(
                "<rect class=\"{class}\" x=\"{from}\" y=\"{upper}\" width=\"24\" height=\"12\"/>"
            )
        } else {
            format!("<path class=\"{class}\" d=\"M{from} {middle}h24\"/>")
        };
        let _ = write!(
            out,
            "{sample}<text x=\"{text_x}\" y=\"{base}\">{name}</text>"
        );
        x += room;
    }
    y + LEGEND
}

/// A path on which each value holds until the next one; as an area, down to `bottom`.
fn steps(places: impl Iterator<Item = (f64, f64)>, bottom: Option<f64>) -> String {
    let mut path = String::new();
    // The path is drawn up to one place; the last one may be to the right of that at the same height.
    let mut drawn = String::new();
    let mut last: Option<(String, String)> = None;
    for (x, y) in places {
        let (x, y) = (coordinate(x), coordinate(y));
        match &last {
            None => {
                let _ = match bottom {
                    Some(bottom) => write!(path, "M{x} {}V{y}", coordinate(bottom)),
                    None => write!(path, "M{x} {y}"),
                };
                drawn.clone_from(&x);
            }
            Some((_, height)) if *height != y => {
                if drawn != x {
                    let _ = write!(path, "H{x}");
                    drawn.clone_from(&x);
                }
                let _ = write!(path, "V{y}");
            }
            Some(_) => {}
        }
        last = Some((x, y));
    }
    if let Some((x, _)) = last.filter(|(x, _)| *x != drawn) {
        let _ = write!(path, "H{x}");
    }
    if let Some(bottom) = bottom.filter(|_| !path.is_empty()) {
        let _ = write!(path, "V{}Z", coordinate(bottom));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_next_one() {
        let places = [(0.0, 9.0), (2.0, 5.0), (3.0, 5.0), (4.0, 9.0), (6.0, 9.0)];
        assert_eq!(steps(places.into_iter(), None), "M0 9H2V5H4V9H6");
        assert_eq!(steps(places.into_iter(), Some(9.0)), "M0 9V9H2V5H4V9H6V9Z");
        assert_eq!(steps([].into_iter(), Some(9.0)), "");
    }

    #[test]
    fn a_legend_names_each_once_and_wraps() {
        let track = |class, name| Track {
            class,
            name,
            is_area: false,
            values: vec![(0.0, 1.0)],
        };
        let lane = |tracks| Lane {
            title: "CPUs",
            axis: Axis::from_zero(4.0, "CPUs"),
            height: 60.0,
            tracks,
        };
        let both = || {
            vec![
                track("total", "a long name"),
                track("cores", "a longer one"),
            ]
        };
        let lanes = [lane(both()), lane(both())];
        let time = Axis::of_time(60.0);
        let ((wide, low), (narrow, high)) =
            (draw(640.0, &time, &lanes), draw(220.0, &time, &lanes));
        assert_eq!(wide.matches("a long name").count(), 1, "{wide}");
        assert!(narrow.contains("a longer one") && high > low);
    }
}
