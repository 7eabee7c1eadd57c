//! Text as markup: escaped, and in both languages.

use super::words::Text;

/// Text that may stand between tags and in attributes, whatever it holds. What XML has no place for is left out.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(letter),
            '\u{fffe}' | '\u{ffff}' => {}
            other if other.is_control() => {}
            other => out.push(other),
        }
    }
    out
}

/// The same in both languages, of which one is shown.
pub(super) fn both(en: &str, zh: &str) -> String {
    format!("<span lang=\"en\">{}</span><span lang=\"zh-CN\">{}</span>", escaped(en), escaped(zh))
}

impl Text {
    /// In both languages, of which one is shown.
    pub(super) fn spans(self) -> String {
        both(self.en, self.zh)
    }
}

/// A number as a float, to be drawn.
#[expect(clippy::cast_precision_loss, reason = "a pixel is coarser")]
pub(super) const fn figure(number: u64) -> f64 {
    number as f64
}

/// A number with its thousands apart.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A time in the unit that suits it.
pub(super) fn time(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", figure(micros) / 1e3),
        _ => format!("{:.2} s", figure(micros) / 1e6),
    }
}
