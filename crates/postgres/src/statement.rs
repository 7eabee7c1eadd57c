//! Statements with the types of their parameters, so that none has to be asked for.

use tokio_postgres::types::Type;

/// A statement that never changes.
#[derive(Debug)]
pub(crate) struct Sql {
    pub(crate) text: &'static str,
    pub(crate) types: &'static [Type],
}

impl Sql {
    pub(crate) const fn new(text: &'static str, types: &'static [Type]) -> Self {
        Self { text, types }
    }
}

/// The tail of a statement that must have changed as many rows as its last parameter says. The server raises the
/// error itself (a text that is no number), so that a COMMIT that is on its way already cannot keep half a batch.
/// The rows are locked: a mismatch is a fault of ours and no race.
macro_rules! exactly {
    ($count:literal) => {
        concat!(
            " SELECT CASE WHEN count(*) = ",
            $count,
            " THEN 0 ELSE CAST(CAST(count(*) AS TEXT) || ' rows instead of ' || CAST(",
            $count,
            " AS TEXT) AS INTEGER) END AS difference FROM done"
        )
    };
}
pub(crate) use exactly;
