//! Reads a stock file strictly: every row is checked before anything is done, and every fault is named by
//! its place. A spreadsheet that was saved in another form must be refused, not guessed at.

use std::collections::HashMap;

use csv::ByteRecord;
use holdfast_core::id::check_text_id;
use holdfast_wire::plain_cell;
use serde::Serialize;

use crate::lines::{LineStarts, without_mark};

/// Most units of one pool.
const QUANTITY_MAX: u64 = 1_000_000_000_000;

/// The location of rows that name none.
const MAIN: &str = "main";

/// One pool to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StockRow {
    /// Where it stands in the file, the header being line 1.
    pub(crate) line: u64,
    /// What.
    pub(crate) sku: String,
    /// Where.
    pub(crate) location: String,
    /// How many.
    pub(crate) quantity: u64,
}

/// One fault, by its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fault {
    /// The line, from 1.
    pub(crate) line: u64,
    /// The column's name; none where the whole line is meant.
    pub(crate) column: Option<String>,
    /// What, as a word for programs.
    pub(crate) code: String,
    /// What, for people.
    pub(crate) detail: String,
}

impl Fault {
    fn line(line: u64, code: &str, detail: impl Into<String>) -> Self {
        Self { line, column: None, code: code.to_owned(), detail: detail.into() }
    }

    fn cell(line: u64, column: &str, code: &str, detail: impl Into<String>) -> Self {
        Self { column: Some(column.to_owned()), ..Self::line(line, code, detail) }
    }
}

/// Reads the whole file: every row, or every fault.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<StockRow>, Vec<Fault>> {
    let text = without_mark(bytes);
    encoding(text).map_err(|fault| vec![fault])?;
    let lines = LineStarts::of(text);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    let mut record = ByteRecord::new();
    let mut places = None;
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let mut seen: HashMap<(String, String), u64> = HashMap::new();
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(vec![Fault::line(1, "malformed_csv", error.to_string())]),
        }
        let line = lines.of_record(text, &record);
        let Some(known) = &places else {
            places = Some(Places::find(&record, line)?);
            continue;
        };
        match known.row(&record, line) {
            Err(found) => faults.extend(found),
            Ok(row) => match seen.insert((row.sku.clone(), row.location.clone()), line) {
                None => rows.push(row),
                Some(first) => faults.push(Fault::cell(
                    line,
                    "sku",
                    "duplicate_row",
                    format!("{:?} at {:?} stands on line {first} already", row.sku, row.location),
                )),
            },
        }
    }
    if places.is_none() {
        faults.push(Fault::line(
            1,
            "empty_file",
            "the file is empty; a header `sku,location,quantity` is expected",
        ));
    } else if rows.is_empty() && faults.is_empty() {
        faults.push(Fault::line(2, "no_rows", "the file has a header and no rows"));
    }
    if faults.is_empty() { Ok(rows) } else { Err(faults) }
}

/// Refuses what is not UTF-8 as a whole; single cells are judged where they stand.
fn encoding(text: &[u8]) -> Result<(), Fault> {
    let marked = text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff");
    // Text in UTF-16 has a NUL in every other byte of plain letters, text in UTF-8 has none at all.
    if marked || text.iter().take(64).any(|byte| *byte == 0) {
        return Err(Fault::line(1, "utf16", "the file is UTF-16 or binary; save it as CSV in UTF-8"));
    }
    Ok(())
}

/// Where the columns stand.
struct Places {
    sku: usize,
    location: Option<usize>,
    quantity: usize,
    count: usize,
}

impl Places {
    fn find(header: &ByteRecord, line: u64) -> Result<Self, Vec<Fault>> {
        let names: Vec<_> =
            header.iter().map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase()).collect();
        if let Some(found) = other_delimiter(&names) {
            let detail = format!("columns are divided by {found}; save the file with commas");
            return Err(vec![Fault::line(line, "wrong_delimiter", detail)]);
        }
        let (mut sku, mut location, mut quantity) = (None, None, None);
        let mut faults = Vec::new();
        for (place, name) in names.iter().enumerate() {
            let slot = match name.as_str() {
                "sku" => &mut sku,
                "location" => &mut location,
                "quantity" => &mut quantity,
                _ => {
                    let detail = "only sku, location and quantity are read";
                    faults.push(Fault::cell(line, name, "unknown_column", detail));
                    continue;
                }
            };
            if slot.replace(place).is_some() {
                faults.push(Fault::cell(line, name, "duplicate_column", "the column stands twice"));
            }
        }
        for (name, slot) in [("sku", sku), ("quantity", quantity)] {
            if slot.is_none() {
                faults.push(Fault::cell(line, name, "missing_column", "the header does not name the column"));
            }
        }
        match (sku, quantity) {
            (Some(sku), Some(quantity)) if faults.is_empty() => {
                Ok(Self { sku, location, quantity, count: names.len() })
            }
            (Some(_) | None, Some(_) | None) => Err(faults),
        }
    }

    fn row(&self, record: &ByteRecord, line: u64) -> Result<StockRow, Vec<Fault>> {
        let count = record.len();
        if count != self.count {
            let code = if count < self.count { "too_few_columns" } else { "too_many_columns" };
            let detail = format!("{count} columns, the header has {}", self.count);
            return Err(vec![Fault::line(line, code, detail)]);
        }
        let cell = |place: usize| record.get(place).unwrap_or_default();
        let sku = identifier(cell(self.sku), line, "sku");
        let location = match self.location.map(cell) {
            None | Some([]) => Ok(MAIN.to_owned()),
            Some(named) => identifier(named, line, "location"),
        };
        let quantity = quantity(cell(self.quantity), line);
        match (sku, location, quantity) {
            (Ok(sku), Ok(location), Ok(quantity)) => Ok(StockRow { line, sku, location, quantity }),
            (sku, location, quantity) => {
                Err([sku.err(), location.err(), quantity.err()].into_iter().flatten().collect())
            }
        }
    }
}

fn other_delimiter(names: &[String]) -> Option<&'static str> {
    let [only] = names else { return None };
    if only.contains(';') {
        Some("semicolons")
    } else if only.contains('\t') {
        Some("tabs")
    } else {
        None
    }
}

fn identifier(cell: &[u8], line: u64, column: &str) -> Result<String, Fault> {
    let fault = |detail: String| Fault::cell(line, column, "invalid_identifier", detail);
    let text = std::str::from_utf8(cell).map_err(|_| fault("is not UTF-8".to_owned()))?;
    // An export keeps spreadsheets from reading a formula; that is undone here, exactly.
    let text = plain_cell(text);
    check_text_id(text).map_err(|error| fault(error.to_string()))?;
    Ok(text.to_owned())
}

fn quantity(cell: &[u8], line: u64) -> Result<u64, Fault> {
    let text = String::from_utf8_lossy(cell);
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(quantity) if digits && quantity <= QUANTITY_MAX => Ok(quantity),
        Ok(_) | Err(_) => {
            let detail = format!("{text:?} is not a whole number from 0 to {QUANTITY_MAX}, digits only");
            Err(Fault::cell(line, "quantity", "invalid_quantity", detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(bytes: &[u8]) -> Vec<(u64, Option<String>, String)> {
        let faults = read(bytes).unwrap_err();
        faults.into_iter().map(|fault| (fault.line, fault.column, fault.code)).collect()
    }

    fn one(line: u64, column: &str, code: &str) -> Vec<(u64, Option<String>, String)> {
        let column = (!column.is_empty()).then(|| column.to_owned());
        vec![(line, column, code.to_owned())]
    }

    fn row(line: u64, sku: &str, location: &str, quantity: u64) -> StockRow {
        StockRow { line, sku: sku.into(), location: location.into(), quantity }
    }

    #[test]
    fn rows_are_read_whatever_ends_the_lines_and_however_the_header_is_spelled() {
        let expected = vec![row(2, "00a", "main", 0), row(4, "00A", "main", 1_000_000_000_000)];
        for end in ["\n", "\r\n", "\r"] {
            let lines = ["\u{feff} SKU ,Quantity", "00a,0", "", "00A,1000000000000", ""];
            assert_eq!(read(lines.join(end).as_bytes()).unwrap(), expected, "{end:?}");
        }
        let named = read(b"location,quantity,sku\neast,3,\"a,b\"\n,4,\"a,b\"").unwrap();
        assert_eq!(named, [row(2, "a,b", "east", 3), row(3, "a,b", "main", 4)]);
    }

    #[test]
    fn files_of_another_form_are_refused_at_the_header() {
        let utf16: Vec<u8> = "sku,quantity\na,1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(faults(&utf16), one(1, "", "utf16"));
        assert_eq!(faults(&[b"\xff\xfe", utf16.as_slice()].concat()), one(1, "", "utf16"));
        assert_eq!(faults(b"sku;quantity\na;1\n"), one(1, "", "wrong_delimiter"));
        assert_eq!(faults(b"sku\tquantity\na\t1\n"), one(1, "", "wrong_delimiter"));
        assert_eq!(faults(b""), one(1, "", "empty_file"));
        assert_eq!(faults(b"\xef\xbb\xbf\r\n"), one(1, "", "empty_file"));
        assert_eq!(faults(b"sku,quantity\n"), one(2, "", "no_rows"));
        assert_eq!(faults(b"sku,amount\na,1\n")[0], one(1, "amount", "unknown_column")[0]);
        assert_eq!(faults(b"sku\na\n"), one(1, "quantity", "missing_column"));
        assert_eq!(faults(b"sku,quantity,SKU\na,1,b\n"), one(1, "sku", "duplicate_column"));
        assert_eq!(faults(b"a,1\n").len(), 4, "no header at all: two unknown, two missing");
    }

    #[test]
    fn quantities_are_digits_and_nothing_else() {
        for text in [
            "\"1,000\"",
            "1e3",
            "12abc",
            "10.0",
            "\"\"",
            "-1",
            "+1",
            " 1",
            "1 ",
            "1000000000001",
            "٣",
            "\u{ff11}",
        ] {
            let file = format!("sku,quantity\na,{text}\n");
            assert_eq!(faults(file.as_bytes()), one(2, "quantity", "invalid_quantity"), "{text}");
        }
        assert_eq!(faults(b"sku,quantity\na,99999999999999999999999999\n").len(), 1);
    }

    #[test]
    fn identifiers_are_exact() {
        for sku in [" a", "a ", "\"\"", "\"a\tb\"", "\u{a0}a", &"x".repeat(129)] {
            let file = format!("sku,quantity\n{sku},1\n");
            assert_eq!(faults(file.as_bytes()), one(2, "sku", "invalid_identifier"), "{sku:?}");
        }
        assert_eq!(faults(b"sku,quantity\n\xa3,1\n"), one(2, "sku", "invalid_identifier"));
        assert_eq!(faults(b"sku,location,quantity\na, ,1\n"), one(2, "location", "invalid_identifier"));
    }

    #[test]
    fn what_an_export_made_harmless_is_read_as_it_was() {
        let skus = ["=1+1", "+49", "-5", "@x", "0017", "17", "1E5", "'=1", "'plain", "''"];
        let cells = skus.map(|sku| format!("{},\"{}\",1\n", holdfast_wire::neutral_cell(sku), "'=shelf"));
        assert!(cells[0].starts_with("'=1+1,"));
        let rows = read(format!("sku,location,quantity\n{}", cells.concat()).as_bytes()).unwrap();
        let read: Vec<_> = rows.iter().map(|row| (row.sku.as_str(), row.location.as_str())).collect();
        assert_eq!(read, skus.map(|sku| (sku, "=shelf")));
        let doubled = faults(b"sku,quantity\n=1,1\n'=1,1\n");
        assert_eq!(doubled, one(3, "sku", "duplicate_row"), "both are the same SKU");
    }

    #[test]
    fn every_fault_of_the_file_is_named() {
        let file = b"sku,location,quantity\na,main,1\nb,1\nc,main,1,\n ,,x\na,,5\na,east,5\n";
        let expected = [
            one(3, "", "too_few_columns"),
            one(4, "", "too_many_columns"),
            one(5, "sku", "invalid_identifier"),
            one(5, "quantity", "invalid_quantity"),
            one(6, "sku", "duplicate_row"),
        ];
        assert_eq!(faults(file), expected.concat());
    }

    #[test]
    fn an_open_quote_does_not_swallow_rows_unseen() {
        assert!(!faults(b"sku,quantity\na,\"1\nb,2\n").is_empty());
        assert!(!faults(b"sku,quantity\n\"a,1\nb,2\n").is_empty());
    }
}
