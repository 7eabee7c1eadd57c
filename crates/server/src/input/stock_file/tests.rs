//! Stock files of every kind.

use super::*;

fn faults(bytes: &[u8]) -> Vec<(u64, Option<String>, String)> {
    faults_in(bytes, ImportMode::Open)
}

fn faults_in(bytes: &[u8], mode: ImportMode) -> Vec<(u64, Option<String>, String)> {
    let faults = super::read(bytes, mode).unwrap_err();
    faults.into_iter().map(|fault| (fault.line, fault.column, fault.fault.to_owned())).collect()
}

fn read(bytes: &[u8]) -> Result<Vec<ImportRow>, Vec<FileFault>> {
    super::read(bytes, ImportMode::Open)
}

fn one(line: u64, column: &str, code: &str) -> Vec<(u64, Option<String>, String)> {
    let column = (!column.is_empty()).then(|| column.to_owned());
    vec![(line, column, code.to_owned())]
}

fn row(line: u64, sku: &str, location: &str, quantity: u64) -> ImportRow {
    let (sku, location) = (Sku::new(sku).unwrap(), Location::new(location).unwrap());
    ImportRow { line, sku, location, quantity, counted: None, new_pool: PoolId(0) }
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

#[test]
fn a_count_says_when_and_what_was_counted() {
    let file = "sku,quantity,counted_at,basis,shipped\na,3,2026-03-29T12:00:00+02:00,unsold,\n\
                b,4,2026-03-29T10:00:00.5Z,on_hand,0\n";
    let rows = super::read(file.as_bytes(), ImportMode::Count).unwrap();
    let at = rows[0].counted.unwrap().at;
    assert_eq!(at.to_string(), "2026-03-29T10:00:00.000Z");
    assert_eq!(
        rows[1].counted,
        Some(Counted { at: at.plus_millis(500), basis: Basis::OnHand { shipped: 0 } })
    );
    for (row, column, fault) in [
        ("a,3,2026-03-29,unsold,", "counted_at", "invalid_time"),
        ("a,3,2026-03-29T12:00:00,unsold,", "counted_at", "invalid_time"),
        ("a,3,,unsold,", "counted_at", "invalid_time"),
        ("a,3,2026-03-29T12:00:00Z,,", "basis", "invalid_basis"),
        ("a,3,2026-03-29T12:00:00Z,Unsold,", "basis", "invalid_basis"),
        ("a,3,2026-03-29T12:00:00Z,unsold,0", "shipped", "invalid_quantity"),
        ("a,3,2026-03-29T12:00:00Z,on_hand,", "shipped", "invalid_quantity"),
        ("a,3,2026-03-29T12:00:00Z,on_hand,-1", "shipped", "invalid_quantity"),
    ] {
        let file = format!("sku,quantity,counted_at,basis,shipped\n{row}\n");
        assert_eq!(faults_in(file.as_bytes(), ImportMode::Count), one(2, column, fault), "{row}");
    }
    let plain = b"sku,quantity\na,1\n";
    let missing = [one(1, "counted_at", "missing_column"), one(1, "basis", "missing_column")];
    assert_eq!(faults_in(plain, ImportMode::Count), missing.concat());
    assert_eq!(faults(b"sku,quantity,basis\na,1,unsold\n"), one(1, "basis", "unknown_column"));
}

#[test]
fn what_looks_alike_stays_apart_and_only_a_file_of_the_same_rows_is_the_same() {
    let file = "sku,quantity\n0017,1\n17,2\n1E5,3\ncaf\u{e9},4\ncafe\u{301},5\n";
    let rows = read(file.as_bytes()).unwrap();
    assert_eq!(rows.len(), 5);
    let digest = |rows: &[ImportRow]| digest("c", ImportMode::Open, rows);
    let turned: Vec<_> = rows.iter().rev().cloned().collect();
    assert_eq!(digest(&rows), digest(&turned));
    assert_ne!(digest(&rows), digest(&rows[1..]));
    assert_ne!(digest(&rows), super::digest("c", ImportMode::Inbound, &rows));
}

#[test]
fn a_file_of_another_kind_is_not_told_row_by_row_without_end() {
    let rows: String = (0..5_000).map(|n| format!("a{n},x\n")).collect();
    assert_eq!(faults(format!("sku,quantity\n{rows}").as_bytes()).len(), FAULTS_MAX);
    let many: String = (0..=IMPORT_ROWS_MAX).map(|n| format!("a{n},1\n")).collect();
    let line = u64::try_from(IMPORT_ROWS_MAX).unwrap() + 2;
    assert_eq!(faults(format!("sku,quantity\n{many}").as_bytes()), one(line, "", "too_many_rows"));
}
