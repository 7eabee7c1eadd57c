//! Where the records of a CSV file stand, for messages that people look up in an editor.

use csv::ByteRecord;

/// The text without the mark that some programs put before UTF-8.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Where lines begin, whatever ends them. The reader counts line feeds only, and old exports end lines
/// with carriage returns alone.
pub(crate) struct LineStarts(Vec<usize>);

impl LineStarts {
    /// Finds them.
    pub(crate) fn of(text: &[u8]) -> Self {
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

    /// The line of a record. The reader's position stands before any empty lines that it skipped.
    pub(crate) fn of_record(&self, text: &[u8], record: &ByteRecord) -> u64 {
        let byte = record.position().map_or(0, csv::Position::byte);
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
            let text = ["a,b", "", "1,\"x", "y\"", "", "", "2,z"].join(end);
            let lines = LineStarts::of(text.as_bytes());
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            let found: Vec<_> = reader
                .byte_records()
                .map(|record| lines.of_record(text.as_bytes(), &record.unwrap()))
                .collect();
            assert_eq!(found, [1, 3, 7], "{end:?}");
        }
    }
}
