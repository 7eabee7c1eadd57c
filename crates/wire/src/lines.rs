//! Where the records of a CSV file stand, for messages that people look up in an editor.

/// The text without the mark that some programs put before UTF-8.
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Where lines begin, whatever ends them. The reader counts line feeds only, and old exports end lines
/// with carriage returns alone.
#[derive(Debug)]
pub struct LineStarts(Vec<usize>);

impl LineStarts {
    /// Finds them.
    pub fn of(text: &[u8]) -> Self {
        let mut starts = vec![0];
        let mut bytes = text.iter().enumerate().peekable();
        while let Some((at, byte)) = bytes.next() {
            let next_is_feed = bytes.peek().is_some_and(|(_, next)| **next == b'\n');
            if *byte == b'\n' || (*byte == b'\r' && !next_is_feed) {
                starts.push(at.saturating_add(1));
            }
        }
        Self(starts)
    }

    /// The line of a record that a reader says begins at a byte. It may stand before empty lines that the reader
    /// skipped.
    pub fn of_record(&self, text: &[u8], byte: u64) -> u64 {
        let from = usize::try_from(byte).unwrap_or(usize::MAX);
        let ends = text.iter().skip(from).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let at = from.saturating_add(ends);
        u64::try_from(self.0.partition_point(|start| *start <= at)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stand_on_the_lines_that_an_editor_shows() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["a,b", "", "1,x", "", "", "2,z"].join(end);
            let lines = LineStarts::of(text.as_bytes());
            let at = |record: &str| u64::try_from(text.find(record).unwrap()).unwrap();
            let found = [at("a,b"), at("1,x"), at("2,z")].map(|byte| lines.of_record(text.as_bytes(), byte));
            assert_eq!(found, [1, 3, 6], "{end:?}");
            // A reader that skips empty lines says where they begin.
            let before = at("2,z") - u64::try_from(end.len()).unwrap();
            assert_eq!(lines.of_record(text.as_bytes(), before), 6, "{end:?}");
        }
    }
}
