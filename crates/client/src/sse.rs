//! Server-sent events, as far as Holdfast sends them.

/// Most bytes of one event that are kept: an order of 1,000 lines stays far below.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// What a stream says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// An event, with its id if it has one.
    Event {
        /// Its kind.
        name: String,
        /// Where the stream stands.
        id: Option<String>,
        /// What it says.
        data: String,
    },
    /// A comment: the other side is alive.
    Alive,
}

/// The stream is not one of events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Takes bytes as they come and gives events when they are whole.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    bytes: Vec<u8>,
    name: String,
    id: Option<String>,
    data: Vec<String>,
}

impl Reader {
    /// Adds what has come.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let kept: usize = self.data.iter().map(String::len).sum();
        if kept.saturating_add(self.bytes.len()).saturating_add(bytes.len()) > EVENT_BYTES_MAX {
            return Err(TooLong);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The next event or comment that is whole.
    pub(crate) fn next(&mut self) -> Option<Said> {
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            let said = self.line(&String::from_utf8_lossy(&line));
            if said.is_some() {
                return said;
            }
        }
        None
    }

    fn line(&mut self, line: &str) -> Option<Said> {
        if line.is_empty() {
            let (name, id) = (std::mem::take(&mut self.name), self.id.take());
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then(|| Said::Event { name, id, data: data.join("\n") });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => return Some(Said::Alive),
            "event" => value.clone_into(&mut self.name),
            "id" => self.id = Some(value.to_owned()),
            "data" => self.data.push(value.to_owned()),
            // Fields that are not known are to be ignored.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, id: Option<&str>, data: &str) -> Said {
        Said::Event { name: name.into(), id: id.map(Into::into), data: data.into() }
    }

    #[test]
    fn events_come_whole_however_they_are_cut() {
        let text = "retry: 5\n\n: alive\n\nevent: order\r\nid: p/0/1\r\ndata: {\"a\":1}\r\n\r\n\
                    data:x\ndata: y\nother: z\n\nevent: order\nid: never ends\n";
        let expected = [Said::Alive, event("order", Some("p/0/1"), "{\"a\":1}"), event("", None, "x\ny")];
        for size in 1..text.len() {
            let mut reader = Reader::default();
            let mut said = Vec::new();
            for part in text.as_bytes().chunks(size) {
                reader.add(part).unwrap();
                said.extend(std::iter::from_fn(|| reader.next()));
            }
            assert_eq!(said, expected, "in parts of {size}");
        }
    }

    #[test]
    fn what_never_ends_is_refused() {
        let mut reader = Reader::default();
        let part = vec![b'x'; 1 << 20];
        assert!((0..20).any(|_| reader.add(&part) == Err(TooLong)));
    }
}
