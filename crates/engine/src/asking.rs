//! Payment providers are asked what became of an attempt before its hold, or its review, is let go. What they answer
//! goes the way of every notice: through the lane, judged by the order's state. *Unknown* changes nothing.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_core::command::{Inquiry, OrderAction, Outcome, Signed};
use holdfast_core::id::{AttemptId, EventId, InvalidId, OrderId, OrderKey, PaymentId, Provider};
use holdfast_core::order::{Notice, Order, PaymentOutcome, State};
use holdfast_core::time::Timestamp;
use holdfast_store::DueOrder;
use tokio::sync::OwnedSemaphorePermit;

use crate::engine::Engine;
use crate::error::Error;

/// What a provider is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusQuestion {
    /// Whom.
    pub provider: Provider,
    /// About which attempt.
    pub attempt_id: AttemptId,
    /// Of which order.
    pub order: OrderId,
    /// The order's business key.
    pub key: OrderKey,
}

/// What a provider says of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentStatus {
    /// It was paid.
    Paid {
        /// The provider's payment.
        payment_id: PaymentId,
        /// When.
        paid_at: Option<Timestamp>,
        /// How much.
        amount_minor: Option<i64>,
        /// In which currency.
        currency: Option<Arc<str>>,
    },
    /// It will not be paid.
    Failed {
        /// The provider's payment.
        payment_id: Option<PaymentId>,
    },
    /// The provider does not know yet, or did not answer.
    Unknown,
}

/// Who can be asked. Implementations bound the time of an answer and how many are asked for at once.
#[async_trait]
pub trait StatusSource: Send + Sync + 'static {
    /// Whether this provider can be asked.
    fn knows(&self, provider: &Provider) -> bool;

    /// Asks.
    async fn ask(&self, question: &StatusQuestion) -> PaymentStatus;
}

/// A question with the place of its attempt among the order's.
struct Asked {
    place: usize,
    question: StatusQuestion,
}

/// What is to be asked about an order whose time is over.
pub(crate) struct Asking {
    due: DueOrder,
    questions: Vec<Asked>,
    _turn: OwnedSemaphorePermit,
}

/// Whether an order can be let go without asking.
pub(crate) enum Doubt {
    /// Nobody has to be asked.
    None,
    /// Providers are to be asked first.
    Ask(Asking),
    /// Too many are asked already: a little later.
    Later,
}

impl Engine {
    /// Has providers asked; before the workers start, and once.
    pub fn ask_providers(&self, source: Arc<dyn StatusSource>) {
        if self.shared.status.set(source).is_err() {
            tracing::warn!("providers are asked already");
        }
    }

    /// Whether there is anybody to ask.
    pub(crate) fn asks_providers(&self) -> bool {
        self.shared.status.get().is_some()
    }

    /// Whom to ask about an order before it is let go.
    pub(crate) fn doubt_of(&self, due: DueOrder, order: &Order) -> Doubt {
        let questions = self.shared.status.get().map(|source| questions(order, &**source));
        let Some(questions) = questions.filter(|questions| !questions.is_empty()) else { return Doubt::None };
        match Arc::clone(&self.shared.asking).try_acquire_owned() {
            Ok(turn) => Doubt::Ask(Asking { due, questions, _turn: turn }),
            Err(_) => Doubt::Later,
        }
    }

    /// Asks, and then lets the order end as it will. Runs beside the pass, which nobody's slow answer holds up.
    pub(crate) async fn ask_then_expire(&self, asking: Asking) -> Result<Outcome, Error> {
        let Some(source) = self.shared.status.get() else {
            return self.expire_now(asking.due, Inquiry::Done).await;
        };
        for Asked { place, question } in &asking.questions {
            let status = source.ask(question).await;
            tracing::info!(order = %question.order, provider = %question.provider, ?status, "a provider was asked");
            if let Some(notice) = notice_of(question, *place, status).map_err(|_| Error::OutcomeUnknown)? {
                let signed = Signed::new(question.provider.as_str(), "asked before the hold was let go");
                // What is known and not yet written down must not be forgotten by letting go: on an error nothing ends.
                self.change_unchecked(question.order, OrderAction::Notice(notice), signed).await?;
            }
        }
        self.expire_now(asking.due, Inquiry::Done).await
    }
}

fn questions(order: &Order, source: &dyn StatusSource) -> Vec<Asked> {
    if !matches!(order.state, State::Held | State::InReview) {
        return Vec::new();
    }
    let open = order.attempts.iter().enumerate().filter(|(_, attempt)| attempt.open);
    let known = open.filter(|(_, attempt)| source.knows(&attempt.provider));
    known
        .map(|(place, attempt)| {
            let question = StatusQuestion {
                provider: attempt.provider.clone(),
                attempt_id: attempt.attempt_id.clone(),
                order: order.id,
                key: order.key.clone(),
            };
            Asked { place, question }
        })
        .collect()
}

/// An answer as a notice. Its event has a stable id, so that asking twice tells once.
fn notice_of(
    question: &StatusQuestion,
    place: usize,
    status: PaymentStatus,
) -> Result<Option<Notice>, InvalidId> {
    let (word, outcome) = match &status {
        PaymentStatus::Paid { .. } => ("paid", PaymentOutcome::Succeeded),
        PaymentStatus::Failed { .. } => ("failed", PaymentOutcome::Failed),
        PaymentStatus::Unknown => return Ok(None),
    };
    let event = format!("status-{}-{place}-{word}", question.order);
    let (payment_id, paid_at, amount_minor, currency) = match status {
        PaymentStatus::Paid { payment_id, paid_at, amount_minor, currency } => {
            (payment_id, paid_at, amount_minor, currency)
        }
        PaymentStatus::Failed { payment_id: Some(payment_id) } => (payment_id, None, None, None),
        PaymentStatus::Failed { payment_id: None } | PaymentStatus::Unknown => {
            (PaymentId::new(&event)?, None, None, None)
        }
    };
    Ok(Some(Notice {
        provider: question.provider.clone(),
        event_id: EventId::new(&event)?,
        payment_id,
        attempt_id: Some(question.attempt_id.clone()),
        outcome,
        paid_at,
        amount_minor,
        currency,
    }))
}
