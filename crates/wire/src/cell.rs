//! Text cells of CSV files that spreadsheets open. One that begins like a formula is written with an
//! apostrophe before it, and reading takes exactly that apostrophe away, so that every text comes back as
//! it was: `=1+1` as `'=1+1`, and a text `'=1+1` as `''=1+1`.

use std::borrow::Cow;

/// What a spreadsheet takes for the beginning of a formula; some take the full-width forms for the others.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// Whether a formula stands in a text, perhaps behind apostrophes.
fn hides_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(FORMULA)
}

/// A text as it is written into a cell.
pub fn neutral_cell(text: &str) -> Cow<'_, str> {
    if hides_formula(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// The text that a cell stands for.
pub fn plain_cell(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| hides_formula(text)).unwrap_or(cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_none_is_a_formula() {
        let texts = [
            "=1+1", "+49", "-5", "@x", "0017", "17", "1E5", "", "'", "''", "'=1", "''=1", "'a", "''a", "a'=",
            " =1", "\t=1", "\r", "＝1", "＋1", "－1", "＠x", "'＝1",
        ];
        for text in texts {
            let cell = neutral_cell(text);
            assert!(!cell.starts_with(FORMULA), "{cell:?}");
            assert_eq!(plain_cell(&cell), text, "{cell:?}");
        }
        assert_eq!(neutral_cell("=1+1"), "'=1+1");
        assert_eq!(neutral_cell("0017"), "0017");
    }
}
