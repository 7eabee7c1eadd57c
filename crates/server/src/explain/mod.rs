//! Evidence told as a chain, in time order: the one builder of it, for the server and for who reads a database beside it.

mod order;
mod pool;
mod steps;

pub use order::order;
pub(crate) use order::waiting;
pub use pool::pool;

use holdfast_wire::Word;

/// Names what there is more of.
fn left_off<const N: usize>(parts: [(&'static str, bool); N]) -> Vec<Word> {
    parts.into_iter().filter(|(_, more)| *more).map(|(name, _)| name.into()).collect()
}
