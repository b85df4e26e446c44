//! The parts that charts as SVG have in common.

use std::fmt::Write as _;

use crate::report::html::escaped;
use crate::simulate::report::axis::Axis;

/// The colours of charts, light and dark, and how their texts look.
pub const STYLE: &str = "\
    :root{--used:#8fbce8;--waiting:#f0a04b;--total:#12396b;--cores:#8a2be2;--rayfit:#0b57b0;--ray:#b3470b;--held:#7fb77e}\
    @media screen and (prefers-color-scheme:dark){:root{--used:#2c6299;--waiting:#b4691a;--total:#dbe8fb;\
    --cores:#cf9dff;--rayfit:#8ab8f5;--ray:#f5a35c;--held:#3d7a45}}\
    svg{width:100%;height:auto;display:block;print-color-adjust:exact;-webkit-print-color-adjust:exact}\
    svg text{font:12px system-ui,sans-serif;fill:var(--text)}svg .end{text-anchor:end}\
    svg .middle{text-anchor:middle}.chart{overflow-x:auto}svg .label{paint-order:stroke;stroke:var(--ground);stroke-width:3px}\
    svg .grid{stroke:var(--line);stroke-width:1;fill:none}\
    .used{fill:var(--used)}.waiting{fill:var(--waiting)}.held{fill:var(--held)}\
    .total,.cores,.nodes{fill:none;stroke-width:2}.total{stroke:var(--total)}\
    .cores{stroke:var(--cores);stroke-dasharray:6 3}.nodes{stroke:var(--faint)}\
    .rayfit{--own:var(--rayfit)}.ray{--own:var(--ray)}\
    svg .path{stroke:var(--own);stroke-width:1.5;fill:none}svg .mark{fill:var(--own);stroke:var(--ground)}";

/// A place in a chart, in units of its view box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// The left edge.
    pub left: f64,
    /// The upper edge.
    pub top: f64,
    /// The right edge.
    pub right: f64,
    /// The lower edge.
    pub bottom: f64,
}

impl Frame {
    /// The horizontal place of a value.
    pub fn x(&self, axis: &Axis, value: f64) -> f64 {
        self.left + axis.part(value) * (self.right - self.left)
    }

    /// The vertical place of a value.
    pub fn y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom - axis.part(value) * (self.bottom - self.top)
    }

    /// Draws the lines and the numbers of the axis in height, with what it counts above it.
    pub fn draw_height(&self, out: &mut String, axis: &Axis, what: &str) {
        let (left, right) = (coordinate(self.left), coordinate(self.right));
        for (value, number) in axis.ticks() {
            let y = coordinate(self.y(axis, value));
            let below = coordinate(self.y(axis, value) + 4.0);
            let end = coordinate(self.left - 6.0);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{left} {y}H{right}\"/><text class=\"end\" x=\"{end}\" \
                 y=\"{below}\">{number}</text>"
            );
        }
        let above = coordinate(self.top - 10.0);
        let what = escaped(what);
        let _ = write!(out, "<text x=\"4\" y=\"{above}\">{what}</text>");
    }

    /// Draws the lines and the numbers of the axis across, with what it counts under it.
    pub fn draw_width(&self, out: &mut String, axis: &Axis, what: &str) {
        let (top, bottom) = (coordinate(self.top), coordinate(self.bottom));
        let below = coordinate(self.bottom + 16.0);
        for (value, number) in axis.ticks() {
            let x = coordinate(self.x(axis, value));
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{x} {top}V{bottom}\"/><text class=\"middle\" x=\"{x}\" \
                 y=\"{below}\">{number}</text>"
            );
        }
        let (middle, under) = (
            coordinate(f64::midpoint(self.left, self.right)),
            coordinate(self.bottom + 34.0),
        );
        let what = escaped(what);
        let _ = write!(
            out,
            "<text class=\"middle\" x=\"{middle}\" y=\"{under}\">{what}</text>"
        );
    }
}

/// A number of a view box, to a tenth.
pub fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0" } else { text }.to_owned()
}

/// The smallest share of its size at which a chart is drawn: its text stays legible. In a smaller window
/// it scrolls in its place.
const SMALLEST: f64 = 0.75;

/// A chart with its text alternative. `title` and `description` are text, `body` is markup; `id` is
/// unique on its page.
pub fn svg(id: &str, size: (f64, f64), title: &str, description: &str, body: &str) -> String {
    let (width, height) = (coordinate(size.0), coordinate(size.1));
    let (title, description) = (escaped(title), escaped(description));
    let least = (size.0 * SMALLEST).round();
    // Screen readers read title and description, since shapes say nothing to them.
    format!(
        "<div class=\"chart\"><svg viewBox=\"0 0 {width} {height}\" style=\"min-width:{least}px\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-text\"><title id=\"{id}-title\">{title}</title>\
         <desc id=\"{id}-text\">{description}</desc>{body}</svg></div>\n"
    )
}

/// A chart of a picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Its height; its width is that of the picture.
    pub height: f64,
    /// The title, as a text.
    pub title: String,
    /// A description, as a text for people who cannot see it.
    pub description: String,
    /// The drawing, as markup.
    pub body: String,
}
