//! Reads a stock file strictly: every row is checked before anything is done, and every fault is named by
//! its place. A spreadsheet that was saved in another form must be refused, not guessed at.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use csv::ByteRecord;
use holdfast_core::id::{Location, PoolId, Sku};
use holdfast_core::import::{Basis, Counted, IMPORT_ROWS_MAX, ImportMode, ImportRow, RowFault, RowRefusal};
use holdfast_core::stock::SUPPLY_MAX;
use holdfast_core::time::Timestamp;
use holdfast_wire::{Code, LineStarts, ProblemItem, plain_cell, without_mark};
use sha2::{Digest, Sha256};

use super::field::TextId;
use super::time::instant;

/// Most faults that are told; a file of another kind has one in every row.
pub(crate) const FAULTS_MAX: usize = 1_000;

/// One fault, by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileFault {
    line: u64,
    /// The column's name; none where the whole line is meant.
    column: Option<String>,
    code: Code,
    /// What, more exactly than the code.
    fault: &'static str,
    detail: String,
}

impl FileFault {
    fn line(line: u64, fault: &'static str, detail: impl Into<String>) -> Self {
        let code = match fault {
            "unknown_column" => Code::UnknownField,
            "duplicate_column" => Code::DuplicateField,
            "invalid_identifier" => Code::InvalidIdentifier,
            "invalid_quantity" => Code::InvalidQuantity,
            "invalid_time" => Code::InvalidTime,
            _ => Code::InvalidValue,
        };
        Self { line, column: None, code, fault, detail: detail.into() }
    }

    fn cell(line: u64, column: &str, fault: &'static str, detail: impl Into<String>) -> Self {
        Self { column: Some(column.to_owned()), ..Self::line(line, fault, detail) }
    }

    /// A row that the authority cannot apply.
    pub(crate) fn of_row(row: &RowFault) -> Self {
        let (code, column, fault, detail) = told(&row.why);
        Self { line: row.line, column: Some(column.to_owned()), code, fault, detail }
    }

    pub(crate) const fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn into_item(self) -> ProblemItem {
        let pointer = match &self.column {
            Some(column) => {
                let mut pointer = format!("/lines/{}", self.line);
                super::json::push_key(&mut pointer, column);
                pointer
            }
            None => format!("/lines/{}", self.line),
        };
        ProblemItem {
            pointer,
            code: self.code.as_str().into(),
            detail: self.detail,
            requested: None,
            available: None,
            line: Some(self.line),
            column: self.column,
            fault: Some(self.fault.into()),
        }
    }
}

/// The map from a row that cannot be applied to what a client is told.
fn told(why: &RowRefusal) -> (Code, &'static str, &'static str, String) {
    match why {
        RowRefusal::UnknownSku => {
            let detail = "the campaign has no stock of this SKU and location";
            (Code::UnknownSku, "sku", "unknown_sku", detail.to_owned())
        }
        RowRefusal::OpenedOtherwise { opening, supply } => {
            let detail =
                format!("the pool was opened with {opening} and has {supply} now; opening changes nothing");
            (Code::Conflict, "quantity", "opened_otherwise", detail)
        }
        RowRefusal::Bundle => {
            let detail = "the SKU is a bundle: it has no stock of its own";
            (Code::Conflict, "sku", "bundle", detail.to_owned())
        }
        RowRefusal::StockInUse(short) => {
            let detail = format!("{} to be taken away, {} available", short.requested, short.available);
            (Code::StockInUse, "quantity", "stock_in_use", detail)
        }
        RowRefusal::Frozen => {
            (Code::Frozen, "sku", "frozen", "no stock leaves while it is frozen".to_owned())
        }
        RowRefusal::NeedsApproval { threshold } => {
            let detail = format!(
                "a change by more than {threshold} wants a second person: send it as an adjustment of its own"
            );
            (Code::Conflict, "quantity", "needs_approval", detail)
        }
        RowRefusal::TooMuch => {
            (Code::Conflict, "quantity", "too_much", "more than a pool may have".to_owned())
        }
        RowRefusal::CountedInFuture => {
            let detail = "this time has not come for the authority";
            (Code::InvalidTime, "counted_at", "counted_in_future", detail.to_owned())
        }
        RowRefusal::CountedBeforeOpening => {
            let detail = "the pool was not open then";
            (Code::InvalidTime, "counted_at", "counted_before_opening", detail.to_owned())
        }
        RowRefusal::CorrectedSince(at) => {
            let detail = format!("the supply was corrected after it, at {at}: count again");
            (Code::Conflict, "counted_at", "corrected_since", detail)
        }
        RowRefusal::ShippedMoreThanSold { sold } => {
            (Code::InvalidQuantity, "shipped", "shipped_more_than_sold", format!("{sold} were sold by then"))
        }
    }
}

/// Reads the whole file: every row, or every fault. The ids of new pools are the engine's to make.
pub(crate) fn read(bytes: &[u8], mode: ImportMode) -> Result<Vec<ImportRow>, Vec<FileFault>> {
    let text = without_mark(bytes);
    encoding(text).map_err(|fault| vec![fault])?;
    let lines = LineStarts::of(text);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    let mut record = ByteRecord::new();
    let mut places = None;
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let mut seen: HashMap<(Sku, Location), u64> = HashMap::new();
    while faults.len() < FAULTS_MAX {
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(vec![FileFault::line(1, "malformed_csv", error.to_string())]),
        }
        let line = lines.of_record(text, record.position().map_or(0, csv::Position::byte));
        let Some(known) = &places else {
            places = Some(Places::find(&record, line, mode)?);
            continue;
        };
        if rows.len() >= IMPORT_ROWS_MAX {
            let detail = format!("a file has at most {IMPORT_ROWS_MAX} rows");
            faults.push(FileFault::line(line, "too_many_rows", detail));
            break;
        }
        match known.row(&record, line) {
            Err(found) => faults.extend(found),
            Ok(row) => match seen.entry((row.sku.clone(), row.location.clone())) {
                Entry::Vacant(place) => {
                    place.insert(line);
                    rows.push(row);
                }
                Entry::Occupied(place) => faults.push(FileFault::cell(
                    line,
                    "sku",
                    "duplicate_row",
                    format!("{:?} at {:?} stands on line {} already", row.sku, row.location, place.get()),
                )),
            },
        }
    }
    if places.is_none() {
        let detail = format!("the file is empty; a header `{}` is expected", names(mode).join(","));
        faults.push(FileFault::line(1, "empty_file", detail));
    } else if rows.is_empty() && faults.is_empty() {
        faults.push(FileFault::line(2, "no_rows", "the file has a header and no rows"));
    }
    if faults.is_empty() { Ok(rows) } else { Err(faults) }
}

/// A hash of what a file says, whatever the order of its rows and the form of its text.
pub(crate) fn digest(campaign: &str, mode: ImportMode, rows: &[ImportRow]) -> [u8; 32] {
    let mut sorted: Vec<&ImportRow> = rows.iter().collect();
    sorted.sort_unstable_by(|a, b| (&a.sku, &a.location).cmp(&(&b.sku, &b.location)));
    let mut hash = Sha256::new();
    let mut text = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    };
    text(campaign);
    text(mode.as_str());
    for row in sorted {
        text(row.sku.as_str());
        text(row.location.as_str());
        text(&row.quantity.to_string());
        if let Some(Counted { at, basis }) = row.counted {
            text(&at.0.to_string());
            match basis {
                Basis::Unsold => text("unsold"),
                Basis::OnHand { shipped } => text(&shipped.to_string()),
            }
        }
    }
    hash.finalize().into()
}

/// Refuses what is not UTF-8 as a whole; single cells are judged where they stand.
fn encoding(text: &[u8]) -> Result<(), FileFault> {
    let marked = text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff");
    // Text in UTF-16 has a NUL in every other byte of plain letters, text in UTF-8 has none at all.
    if marked || text.iter().take(64).any(|byte| *byte == 0) {
        return Err(FileFault::line(1, "utf16", "the file is UTF-16 or binary; save it as CSV in UTF-8"));
    }
    Ok(())
}

/// The columns of a mode, as an export writes them.
const fn names(mode: ImportMode) -> &'static [&'static str] {
    match mode {
        ImportMode::Open | ImportMode::Inbound => &["sku", "location", "quantity"],
        ImportMode::Count => &["sku", "location", "quantity", "counted_at", "basis", "shipped"],
    }
}

/// Where the columns stand.
#[derive(Default)]
struct Places {
    sku: Option<usize>,
    location: Option<usize>,
    quantity: Option<usize>,
    counted_at: Option<usize>,
    basis: Option<usize>,
    shipped: Option<usize>,
    count: usize,
}

impl Places {
    fn find(header: &ByteRecord, line: u64, mode: ImportMode) -> Result<Self, Vec<FileFault>> {
        let found: Vec<_> =
            header.iter().map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase()).collect();
        if let Some(other) = other_delimiter(&found) {
            let detail = format!("columns are divided by {other}; save the file with commas");
            return Err(vec![FileFault::line(line, "wrong_delimiter", detail)]);
        }
        let mut places = Self { count: found.len(), ..Self::default() };
        let mut faults = Vec::new();
        for (place, name) in found.iter().enumerate() {
            let Some(slot) = places.slot(name).filter(|_| names(mode).contains(&name.as_str())) else {
                let detail = format!("only {} are read in this mode", names(mode).join(", "));
                faults.push(FileFault::cell(line, name, "unknown_column", detail));
                continue;
            };
            if slot.replace(place).is_some() {
                faults.push(FileFault::cell(line, name, "duplicate_column", "the column stands twice"));
            }
        }
        for name in names(mode) {
            let may_be_absent = matches!(*name, "location" | "shipped");
            if !may_be_absent && places.slot(name).is_some_and(|slot| slot.is_none()) {
                let detail = "the header does not name the column";
                faults.push(FileFault::cell(line, name, "missing_column", detail));
            }
        }
        if faults.is_empty() { Ok(places) } else { Err(faults) }
    }

    fn slot(&mut self, name: &str) -> Option<&mut Option<usize>> {
        match name {
            "sku" => Some(&mut self.sku),
            "location" => Some(&mut self.location),
            "quantity" => Some(&mut self.quantity),
            "counted_at" => Some(&mut self.counted_at),
            "basis" => Some(&mut self.basis),
            "shipped" => Some(&mut self.shipped),
            _ => None,
        }
    }

    fn row(&self, record: &ByteRecord, line: u64) -> Result<ImportRow, Vec<FileFault>> {
        let count = record.len();
        if count != self.count {
            let fault = if count < self.count { "too_few_columns" } else { "too_many_columns" };
            let detail = format!("{count} columns, the header has {}", self.count);
            return Err(vec![FileFault::line(line, fault, detail)]);
        }
        let cell = |place: Option<usize>| place.and_then(|place| record.get(place)).unwrap_or_default();
        let sku = identifier::<Sku>(cell(self.sku), line, "sku");
        let location = match cell(self.location) {
            [] => Ok(Location::main()),
            named => identifier(named, line, "location"),
        };
        let quantity = quantity(cell(self.quantity), line, "quantity");
        let counted = match self.counted_at {
            None => Ok(None),
            Some(_) => counted(cell(self.counted_at), cell(self.basis), cell(self.shipped), line).map(Some),
        };
        match (sku, location, quantity, counted) {
            (Ok(sku), Ok(location), Ok(quantity), Ok(counted)) => {
                Ok(ImportRow { line, sku, location, quantity, counted, new_pool: PoolId(0) })
            }
            (sku, location, quantity, counted) => {
                let single = [sku.err(), location.err(), quantity.err()];
                Err(single.into_iter().flatten().chain(counted.err().unwrap_or_default()).collect())
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

fn identifier<T: TextId>(cell: &[u8], line: u64, column: &str) -> Result<T, FileFault> {
    let fault = |detail: String| FileFault::cell(line, column, "invalid_identifier", detail);
    let text = std::str::from_utf8(cell).map_err(|_| fault("is not UTF-8".to_owned()))?;
    // An export keeps spreadsheets from reading a formula; that is undone here, exactly.
    T::from_text(plain_cell(text)).map_err(|error| fault(error.to_string()))
}

fn quantity(cell: &[u8], line: u64, column: &str) -> Result<u64, FileFault> {
    let text = String::from_utf8_lossy(cell);
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(quantity) if digits && quantity <= SUPPLY_MAX => Ok(quantity),
        Ok(_) | Err(_) => {
            let detail = format!("{text:?} is not a whole number from 0 to {SUPPLY_MAX}, digits only");
            Err(FileFault::cell(line, column, "invalid_quantity", detail))
        }
    }
}

fn counted(at: &[u8], basis: &[u8], shipped: &[u8], line: u64) -> Result<Counted, Vec<FileFault>> {
    let at = time(at, line);
    let basis = match (basis, shipped) {
        (b"unsold", []) => Ok(Basis::Unsold),
        (b"unsold", _) => {
            let detail = "must be empty where units that are not sold were counted";
            Err(FileFault::cell(line, "shipped", "invalid_quantity", detail))
        }
        (b"on_hand", shipped) => quantity(shipped, line, "shipped").map(|shipped| Basis::OnHand { shipped }),
        (other, _) => {
            let detail = format!("{:?} is none of unsold, on_hand", String::from_utf8_lossy(other));
            Err(FileFault::cell(line, "basis", "invalid_basis", detail))
        }
    };
    match (at, basis) {
        (Ok(at), Ok(basis)) => Ok(Counted { at, basis }),
        (at, basis) => Err([at.err(), basis.err()].into_iter().flatten().collect()),
    }
}

fn time(cell: &[u8], line: u64) -> Result<Timestamp, FileFault> {
    let text = String::from_utf8_lossy(cell);
    instant()
        .parse(&text)
        .map_err(|why| FileFault::cell(line, "counted_at", "invalid_time", format!("{text:?} {why}")))
}

#[cfg(test)]
mod tests;
