//! Charts along time or load, as inline SVG.

use std::fmt::Write as _;

use super::markup::{escaped, figure, thousands};
use super::words::{self, Text};
use crate::outcome::Window;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 848.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 286.0;
/// Names of faults stand in so many rows above the chart; a name without room is told by its window's title.
const NAME_ROWS: usize = 3;
const NAME_ROW: f64 = 16.0;
/// Room for a letter of a name: enough for the widest.
const LETTER: f64 = 7.0;
/// Lines across a linear chart, and most that are marked along its time.
const STEPS_ACROSS: u32 = 4;
const MARKS_MAX: u64 = 10;

/// The axis of values.
#[derive(Debug, Clone, Copy)]
pub(super) enum Axis {
    /// From 0.
    Linear {
        /// To here.
        most: f64,
    },
    /// By decades.
    Log {
        /// From this power of ten.
        from: i32,
        /// To that.
        to: i32,
    },
}

impl Axis {
    /// A linear one that has room for a value, and ends at a number that people say.
    pub(super) fn linear(most: f64) -> Self {
        let decade = 10_f64.powf(most.max(1.0).log10().floor());
        let steps = [1.0, 2.0, 4.0, 10.0].map(|step| step * decade);
        Self::Linear { most: steps.into_iter().find(|step| *step >= most).unwrap_or(most) }
    }

    /// A logarithmic one that has room for values.
    pub(super) fn log(values: impl Iterator<Item = u64> + Clone) -> Self {
        let decade = |value: u64| value.max(1).ilog10();
        let from = values.clone().map(decade).min().unwrap_or(0);
        let to = values.map(decade).max().unwrap_or(0) + 1;
        Self::Log { from: i32::try_from(from).unwrap_or(0), to: i32::try_from(to).unwrap_or(1) }
    }

    /// Where a value stands, from 0 at the foot to 1.
    fn share(self, value: f64) -> f64 {
        match self {
            Self::Linear { most } => value / most,
            Self::Log { from, to } => (value.max(1.0).log10() - f64::from(from)) / f64::from(to - from),
        }
    }

    /// The values that lines are drawn at.
    fn marks(self) -> Vec<f64> {
        match self {
            Self::Linear { most } => {
                (0..=STEPS_ACROSS).map(|step| most * f64::from(step) / f64::from(STEPS_ACROSS)).collect()
            }
            Self::Log { from, to } => (from..=to).map(|decade| 10_f64.powi(decade)).collect(),
        }
    }
}

/// A chart under construction.
pub(super) struct Plot {
    inner: String,
    axis: Axis,
    /// Where the chart ends, in seconds or whatever else is along it.
    end: u64,
}

impl Plot {
    /// An empty one, to so many of a unit. `label` writes a value of the axis.
    pub(super) fn new(end: u64, unit: &str, axis: Axis, label: impl Fn(f64) -> String) -> Self {
        let mut plot = Self { inner: String::new(), axis, end: end.max(1) };
        for value in axis.marks() {
            let y = plot.y(value);
            let _ = write!(
                plot.inner,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                escaped(&label(value))
            );
        }
        let step = step(plot.end);
        for mark in (0..=plot.end).step_by(usize::try_from(step).unwrap_or(1)) {
            let x = plot.x(figure(mark));
            let _ = write!(
                plot.inner,
                "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{BOTTOM}\" y2=\"{:.1}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} {}</text>",
                BOTTOM + 5.0,
                BOTTOM + 20.0,
                thousands(mark),
                escaped(unit)
            );
        }
        plot
    }

    fn x(&self, along: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (along / figure(self.end)).clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * self.axis.share(value).clamp(0.0, 1.0)
    }

    /// Shades the times of faults and names them.
    pub(super) fn windows(&mut self, windows: &[Window]) {
        let mut taken = [LEFT; NAME_ROWS];
        for window in windows {
            let (from, to) = (self.x(window.from), self.x(window.to));
            let name = words::fault(&window.fault);
            let (en, zh) = name.map_or((&*window.fault, &*window.fault), |text| (text.en, text.zh));
            let _ = write!(
                self.inner,
                "<rect class=\"window\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\">\
                 <title>{} / {}: {:.1}–{:.1} s</title></rect>",
                (to - from).max(2.0),
                BOTTOM - TOP,
                escaped(en),
                escaped(zh),
                window.from,
                window.to
            );
            let letters = u32::try_from(en.chars().count()).unwrap_or(u32::MAX);
            let width = f64::from(letters) * LETTER;
            let x = from.min(RIGHT - width).max(LEFT);
            let Some((row, end)) = (1..).zip(&mut taken).find(|(_, end)| **end <= x) else { continue };
            *end = x + width + LETTER;
            let y = TOP - 4.0 - NAME_ROW * (f64::from(row) - 1.0);
            let _ = write!(
                self.inner,
                "<text lang=\"en\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\
                 <text lang=\"zh-CN\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
                escaped(en),
                escaped(zh)
            );
        }
    }

    /// Fills between two lines of steps: of each step, from which second, to which, from which value, to which.
    pub(super) fn area(&mut self, class: &str, steps: &[(u64, u64, f64, f64)]) {
        let (mut there, mut back) = (String::new(), String::new());
        for (from, to, _, high) in steps {
            let (from, to, y) = (self.x(figure(*from)), self.x(figure(*to)), self.y(*high));
            let command = if there.is_empty() { 'M' } else { 'L' };
            let _ = write!(there, "{command}{from:.1} {y:.1}H{to:.1}");
        }
        for (from, to, low, _) in steps.iter().rev() {
            let (from, to, y) = (self.x(figure(*from)), self.x(figure(*to)), self.y(*low));
            let _ = write!(back, "L{to:.1} {y:.1}H{from:.1}");
        }
        if !there.is_empty() {
            let _ = write!(self.inner, "<path d=\"{there}{back}Z\" style=\"fill:var(--{class})\"/>");
        }
    }

    /// A line of steps; where there is no value, it is broken.
    pub(super) fn trace(
        &mut self,
        class: &str,
        is_dashed: bool,
        steps: impl Iterator<Item = (u64, u64, Option<f64>)>,
    ) {
        let mut path = String::new();
        let mut is_broken = true;
        for (from, to, value) in steps {
            let Some(value) = value else {
                is_broken = true;
                continue;
            };
            let (from, to, y) = (self.x(figure(from)), self.x(figure(to)), self.y(value));
            let command = if is_broken { 'M' } else { 'L' };
            let _ = write!(path, "{command}{from:.1} {y:.1}H{to:.1}");
            is_broken = false;
        }
        let dashes = if is_dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        let colour = if class == "due" { String::from("currentColor") } else { format!("var(--{class})") };
        if !path.is_empty() {
            let _ =
                write!(self.inner, "<path class=\"trace\"{dashes} d=\"{path}\" style=\"stroke:{colour}\"/>");
        }
    }

    /// A line through points, each marked.
    pub(super) fn line(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let (mut path, mut dots) = (String::new(), String::new());
        for (along, value) in points {
            let (x, y) = (self.x(along), self.y(value));
            let command = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{command}{x:.1} {y:.1}");
            let _ =
                write!(dots, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" style=\"fill:var(--{class})\"/>");
        }
        if !path.is_empty() {
            let _ = write!(
                self.inner,
                "<path class=\"trace\" d=\"{path}\" style=\"stroke:var(--{class})\"/>{dots}"
            );
        }
    }

    /// An upright line at a place, with its name.
    pub(super) fn mark(&mut self, along: f64, row: u8, text: Text) {
        let x = self.x(along);
        let y = TOP - 6.0 - NAME_ROW * f64::from(row);
        let _ = write!(
            self.inner,
            "<line class=\"due\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\"/>"
        );
        // To the side where there is room.
        let anchor = if x > (LEFT + RIGHT) / 2.0 { "end" } else { "start" };
        for (lang, text) in [("en", text.en), ("zh-CN", text.zh)] {
            let _ = write!(
                self.inner,
                "<text lang=\"{lang}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
                escaped(text)
            );
        }
    }

    /// The finished chart.
    pub(super) fn finish(self, id: &str, title: Text, description: Text) -> String {
        svg(id, title, description, HEIGHT, &self.inner)
    }
}

/// A drawing with its name and what it shows, in both languages, for who cannot see it.
pub(super) fn svg(id: &str, title: Text, description: Text, height: f64, inner: &str) -> String {
    let words = |tag: &str, text: Text| {
        format!("<{tag} id=\"{id}-{tag}\">{} / {}</{tag}>", escaped(text.en), escaped(text.zh))
    };
    format!(
        "<div class=\"wide\"><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-desc\">{}{}{inner}</svg></div>",
        words("title", title),
        words("desc", description)
    )
}

/// What is between two marks, such that there are few, at numbers that people say.
fn step(end: u64) -> u64 {
    let steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 6_000, 12_000, 30_000, 60_000];
    let enough = steps.into_iter().find(|step| end / step <= MARKS_MAX);
    enough.unwrap_or_else(|| (end / MARKS_MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_room_for_what_it_shows() {
        for most in [0.0, 1.0, 3.0, 9.0, 10.0, 11.0, 4_000.0, 4_001.0, 99_999.0] {
            let Axis::Linear { most: end } = Axis::linear(most) else { panic!() };
            assert!(end >= most && end <= most.max(1.0) * 2.5, "{most}: {end}");
        }
        let Axis::Log { from, to } = Axis::log([90, 1_000, 5_000_000].into_iter()) else { panic!() };
        assert_eq!((from, to), (1, 7));
        let Axis::Log { from, to } = Axis::log(std::iter::empty()) else { panic!() };
        assert_eq!((from, to), (0, 1));
    }

    #[test]
    fn a_long_run_has_few_marks() {
        for seconds in [1, 10, 61, 1_800, 86_400, 1_000_000] {
            assert!(seconds / step(seconds) <= MARKS_MAX, "{seconds}");
        }
    }
}
