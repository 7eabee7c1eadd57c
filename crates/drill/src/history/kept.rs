//! A history while it grows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{EXCHANGES_MAX, Exchange};

/// Exchanges that are kept together: a list that grew as one would be copied, and be twice there meanwhile.
const PIECE: usize = 65_536;

/// Every exchange, in the order in which they ended. It is bounded: see [`History::is_full`].
#[derive(Debug, Default)]
pub(crate) struct History {
    pieces: Mutex<Vec<Vec<Exchange>>>,
    full: AtomicBool,
}

impl History {
    /// Keeps one.
    pub(crate) fn note(&self, exchange: Exchange) {
        let mut pieces = self.pieces();
        if pieces.last().is_none_or(|piece| piece.len() >= PIECE) {
            if pieces.len() >= EXCHANGES_MAX.div_ceil(PIECE) {
                self.full.store(true, Ordering::Relaxed);
            }
            pieces.push(Vec::with_capacity(PIECE));
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(exchange);
        }
    }

    /// Whether no more buyers should begin. Those who have begun still fit: what they were told must be kept.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// All of it.
    pub(crate) fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut *self.pieces()).into_iter().flatten().collect()
    }

    fn pieces(&self) -> MutexGuard<'_, Vec<Vec<Exchange>>> {
        // Whoever has panicked while it noted something fails its own run.
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
