//! Replays a plan, invoice by invoice, a bounded number of them in flight.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use tokio::task::JoinSet;

use super::book::Book;
use super::law::Tally;
use super::plan::{Adjustment, Invoice, Order, Return};
use super::shop::{Moved, Placed, Shop};

/// A replay under way.
struct Run<S> {
    shop: Arc<S>,
    book: Mutex<Book>,
    tally: Mutex<Tally>,
    /// A request was not answered: what follows would only wait for the same.
    stopped: AtomicBool,
}

/// Replays the invoices and says what was answered. They start in their order; with `in_flight` 1 each
/// waits for the one before.
pub(crate) async fn replay<S: Shop>(
    shop: Arc<S>,
    invoices: Vec<Invoice>,
    in_flight: usize,
    bar: &ProgressBar,
) -> Result<Tally> {
    let run = Arc::new(Run {
        shop,
        book: Mutex::default(),
        tally: Mutex::default(),
        stopped: AtomicBool::new(false),
    });
    let mut tasks = JoinSet::new();
    for invoice in invoices {
        while tasks.len() >= in_flight.max(1) {
            finish(&mut tasks, bar).await?;
        }
        if run.stopped.load(Ordering::Relaxed) {
            break;
        }
        let run = Arc::clone(&run);
        tasks.spawn(async move { run.invoice(&invoice).await });
    }
    while !tasks.is_empty() {
        finish(&mut tasks, bar).await?;
    }
    let tally = std::mem::take(&mut *guard(&run.tally));
    Ok(tally)
}

async fn finish(tasks: &mut JoinSet<()>, bar: &ProgressBar) -> Result<()> {
    tasks.join_next().await.transpose().context("an invoice was cut off")?;
    bar.inc(1);
    Ok(())
}

/// Nothing here can break halfway while it is locked, so what is behind a poisoned lock is whole.
fn guard<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Shop> Run<S> {
    async fn invoice(&self, invoice: &Invoice) {
        if let Err((what, error)) = self.parts(invoice).await {
            self.stopped.store(true, Ordering::Relaxed);
            guard(&self.tally).unanswered.push(format!("{what}: {error:#}"));
        }
    }

    async fn parts(&self, invoice: &Invoice) -> Result<(), (String, anyhow::Error)> {
        if let Some(order) = &invoice.order {
            guard(&self.tally).orders += 1;
            self.order(order).await.map_err(|error| (format!("order {}", order.order_no), error))?;
        }
        for adjustment in &invoice.adjustments {
            let what = || format!("adjustment of line {}", adjustment.line);
            self.adjustment(adjustment).await.map_err(|error| (what(), error))?;
        }
        for row in &invoice.returns {
            self.give_back(row).await.map_err(|error| (format!("return of line {}", row.line), error))?;
        }
        Ok(())
    }

    async fn order(&self, order: &Order) -> Result<()> {
        let id = match self.shop.place(order).await? {
            Placed::Held(id) => id,
            Placed::SoldOut => {
                guard(&self.tally).sold_out_orders += 1;
                return Ok(());
            }
            Placed::Other(words) => {
                guard(&self.tally).strange(format!("order {}", order.order_no), &words);
                return Ok(());
            }
        };
        guard(&self.tally).hold(order);
        match self.shop.pay(order, &id).await? {
            Moved::Done => {
                guard(&self.tally).sell(order);
                let mut book = guard(&self.book);
                for (number, line) in (1_u32..).zip(&order.lines) {
                    let name = (order.rank, id.as_str(), order.order_no.as_str());
                    book.sell(name, &order.account, (number, &line.sku, line.quantity));
                }
            }
            Moved::Refused => guard(&self.tally).strange(format!("payment of {}", order.order_no), "refused"),
            Moved::Other(words) => {
                guard(&self.tally).strange(format!("payment of {}", order.order_no), &words);
            }
        }
        Ok(())
    }

    async fn adjustment(&self, adjustment: &Adjustment) -> Result<()> {
        let moved = self.shop.adjust(adjustment).await?;
        let mut tally = guard(&self.tally);
        match moved {
            Moved::Done => tally.adjust(&adjustment.sku, adjustment.units),
            Moved::Refused => tally.adjustments_refused += 1,
            Moved::Other(words) => tally.strange(format!("adjustment of line {}", adjustment.line), &words),
        }
        Ok(())
    }

    async fn give_back(&self, row: &Return) -> Result<()> {
        let (found, unmatched) = guard(&self.book).take(&row.account, &row.sku, row.units);
        guard(&self.tally).unmatched_return_units += u64::from(unmatched);
        for taken in found {
            let moved = self.shop.refund(row, &taken).await?;
            let mut tally = guard(&self.tally);
            let what = || format!("refund of {} for line {}", taken.order_no, row.line);
            match moved {
                Moved::Done => tally.refund(&row.sku, taken.units()),
                Moved::Refused => tally.strange(what(), "refused"),
                Moved::Other(words) => tally.strange(what(), &words),
            }
        }
        Ok(())
    }
}
