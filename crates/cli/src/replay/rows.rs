//! Reads an order export: the five columns a replay needs, as exact text.

use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use csv::ByteRecord;
use holdfast_wire::{LineStarts, without_mark};

/// Which columns of the file say what, by their header names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    /// The order number.
    order: String,
    /// What was bought.
    sku: String,
    /// How many; an integer.
    quantity: String,
    /// Who bought; without it every order is a guest's.
    account: Option<String>,
    /// When. Only its presence is checked: rows are replayed in the order of the file.
    at: Option<String>,
}

impl Columns {
    /// The columns of the Online Retail data set.
    pub(crate) fn online_retail() -> Self {
        Self {
            order: "InvoiceNo".into(),
            sku: "StockCode".into(),
            quantity: "Quantity".into(),
            account: Some("CustomerID".into()),
            at: Some("InvoiceDate".into()),
        }
    }
}

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut order, mut sku, mut quantity, mut account, mut at) = (None, None, None, None, None);
        for part in text.split(',') {
            let (key, name) = part.split_once('=').ok_or_else(|| format!("{part:?} is not KEY=COLUMN"))?;
            let slot = match key.trim() {
                "order" => &mut order,
                "sku" => &mut sku,
                "quantity" => &mut quantity,
                "account" => &mut account,
                "at" => &mut at,
                other => return Err(format!("{other:?} is none of order, sku, quantity, account, at")),
            };
            if name.is_empty() {
                return Err(format!("{key} names no column"));
            }
            if slot.replace(name.to_owned()).is_some() {
                return Err(format!("{key} is given twice"));
            }
        }
        let needed = |slot: Option<String>, key: &str| slot.ok_or_else(|| format!("{key}=COLUMN is missing"));
        Ok(Self {
            order: needed(order, "order")?,
            sku: needed(sku, "sku")?,
            quantity: needed(quantity, "quantity")?,
            account,
            at,
        })
    }
}

/// One row of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Where it stands, the header being line 1.
    pub(crate) line: u64,
    /// The order number.
    pub(crate) order: String,
    /// What was bought.
    pub(crate) sku: String,
    /// How many; negative in cancellations and write-offs.
    pub(crate) quantity: i32,
    /// Who; empty where the file is blank.
    pub(crate) account: String,
}

/// Where the columns stand.
struct Places {
    order: usize,
    sku: usize,
    quantity: usize,
    account: Option<usize>,
}

impl Places {
    fn find(header: &ByteRecord, columns: &Columns) -> Result<Self> {
        let place = |name: &str| {
            let mut found = header.iter().enumerate().filter(|(_, field)| *field == name.as_bytes());
            match (found.next(), found.next()) {
                (Some((at, _)), None) => Ok(at),
                (Some(_), Some(_)) => Err(anyhow!("the header names the column {name:?} twice")),
                (None, _) => Err(anyhow!("the header has no column {name:?}; it reads {}", shown(header))),
            }
        };
        if let Some(at) = &columns.at {
            place(at)?;
        }
        Ok(Self {
            order: place(&columns.order)?,
            sku: place(&columns.sku)?,
            quantity: place(&columns.quantity)?,
            account: columns.account.as_deref().map(place).transpose()?,
        })
    }
}

fn shown(header: &ByteRecord) -> String {
    let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
    format!("{:?}", names.join(","))
}

/// Reads every row. Only the needed columns must be UTF-8: free text of old exports often is not.
pub(crate) fn read(bytes: &[u8], columns: &Columns) -> Result<Vec<Row>> {
    let text = without_mark(bytes);
    let lines = LineStarts::of(text);
    let mut reader = csv::ReaderBuilder::new().from_reader(text);
    let places = Places::find(reader.byte_headers().context("the header cannot be read")?, columns)?;
    let mut rows = Vec::new();
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).context("the file is not regular CSV")? {
        let line = lines.of_record(text, record.position().map_or(0, csv::Position::byte));
        rows.push(row(&record, line, &places).with_context(|| format!("line {line}"))?);
    }
    if rows.is_empty() {
        bail!("the file has no rows");
    }
    Ok(rows)
}

fn row(record: &ByteRecord, line: u64, places: &Places) -> Result<Row> {
    let field = |at: usize| {
        let bytes = record.get(at).unwrap_or_default();
        std::str::from_utf8(bytes).with_context(|| format!("column {} is not UTF-8", at.saturating_add(1)))
    };
    let order = field(places.order)?;
    let sku = field(places.sku)?;
    if order.is_empty() || sku.is_empty() {
        bail!("the order number or the SKU is empty");
    }
    let quantity = field(places.quantity)?;
    Ok(Row {
        line,
        order: order.to_owned(),
        sku: sku.to_owned(),
        quantity: quantity.parse().map_err(|_| anyhow!("the quantity {quantity:?} is not an integer"))?,
        account: places.account.map(field).transpose()?.unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_exact_text_and_customers_keep_their_decimal_point() {
        let text = "\u{feff}InvoiceNo,StockCode,Description,Quantity,InvoiceDate,CustomerID\r\n\
                    0100,15a,\"A, B\",-3,2020-01-01,17850.0\r\n0101,15A,,2,2020-01-01,\r\n";
        let rows = read(text.as_bytes(), &Columns::online_retail()).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows[0],
            Row { line: 2, order: "0100".into(), sku: "15a".into(), quantity: -3, account: "17850.0".into() }
        );
        assert_eq!((rows[1].sku.as_str(), rows[1].account.as_str()), ("15A", ""));
    }

    #[test]
    fn text_that_is_not_utf8_matters_only_in_needed_columns() {
        let columns: Columns = "order=o,sku=s,quantity=q".parse().unwrap();
        assert_eq!(read(&b"o,s,q,note\n1,a,2,\xa3 5\n"[..], &columns).unwrap().len(), 1);
        let error = read(&b"o,s,q\n1,\xa3,2\n"[..], &columns).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "line 2: column 2 is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0"
        );
    }

    #[test]
    fn what_cannot_be_replayed_is_named_by_its_line() {
        let columns: Columns = "order=o,sku=s,quantity=q".parse().unwrap();
        for (text, message) in [
            ("o,s,q\n1,a,1.0\n", "line 2: the quantity \"1.0\" is not an integer"),
            ("o,s,q\n1,a,1\n2,,1\n", "line 3: the order number or the SKU is empty"),
            ("o,s,n\n1,a,1\n", "the header has no column \"q\"; it reads \"o,s,n\""),
            ("o,s,q,s\n1,a,1,b\n", "the header names the column \"s\" twice"),
            ("o,s,q\n", "the file has no rows"),
        ] {
            assert_eq!(format!("{:#}", read(text.as_bytes(), &columns).unwrap_err()), message);
        }
        assert!(read(&b"o,s,q\n1,a\n"[..], &columns).is_err(), "a short row");
    }

    #[test]
    fn columns_are_checked() {
        assert!("order=a,sku=b,quantity=c,account=d,at=e".parse::<Columns>().is_ok());
        for text in
            ["", "order=a", "order=a,sku=b,quantity=", "order=a,order=b", "order=a,sku=b,count=c", "a,b,c"]
        {
            assert!(text.parse::<Columns>().is_err(), "{text:?}");
        }
    }
}
