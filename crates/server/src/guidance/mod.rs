//! What to do about each problem: one table for the pages at `/problems/{code}` and for `docs/errors.md`.
//! A code that is added without its guidance does not compile.

#[cfg(test)]
pub(crate) mod markdown;
mod request;
mod sale;
mod server;

use holdfast_wire::{BilingualView, Code, ProblemKindView};

use crate::retryable::is_retryable;

/// A text in the languages of the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) en: &'static str,
    pub(crate) zh: &'static str,
}

impl Text {
    fn view(self) -> BilingualView {
        BilingualView { en: self.en.into(), zh: self.zh.into() }
    }
}

/// Shorthand for a [`Text`].
const fn text(en: &'static str, zh: &'static str) -> Text {
    Text { en, zh }
}

/// What a client should know about a code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guidance {
    pub(crate) means: Text,
    pub(crate) recorded: Recorded,
    pub(crate) retry: Retry,
    pub(crate) key: Key,
    pub(crate) buyer: Text,
}

/// Whether the authority keeps the answer for the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// It left no trace.
    No,
    /// The answer is a fact of the key's order.
    Yes,
    /// The answer says it.
    Either,
    /// Nobody knows whether something was done.
    Unknown,
}

/// Whether and when the same request may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Never: the answer is final.
    Never,
    /// Only a corrected request.
    Corrected,
    /// After a short wait.
    Soon,
    /// When something has changed: stock, a window, a state.
    WhenChanged,
}

/// Which key the next try uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// The same.
    Same,
    /// A new one; the old one is spent.
    New,
    /// The same while nothing is recorded, else a new one.
    ByRecorded,
    /// No other try is needed.
    Unneeded,
}

impl Recorded {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Yes => "yes",
            Self::Either => "either",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) const fn text(self) -> Text {
        match self {
            Self::No => text("No: it left no trace.", "否：没有留下任何痕迹。"),
            Self::Yes => text(
                "Yes: it is a fact; the same key gets it again.",
                "是：已成事实，同一个键会再次得到同样的答复。",
            ),
            Self::Either => text("See `recorded` in the answer.", "以答复中的 `recorded` 为准。"),
            Self::Unknown => {
                text("Unknown (`null`): it may have been done.", "未知（`null`）：可能已经执行。")
            }
        }
    }
}

impl Retry {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Corrected => "corrected",
            Self::Soon => "soon",
            Self::WhenChanged => "when_changed",
        }
    }

    pub(crate) const fn text(self) -> Text {
        match self {
            Self::Never => text("No: the answer will not change.", "不要重试：答复不会改变。"),
            Self::Corrected => text("Not as it is: correct the request first.", "不要原样重试：先改正请求。"),
            Self::Soon => text(
                "Yes: after `retry_after_ms` (or 1 s), twice as long each time, with jitter.",
                "可以：等待 `retry_after_ms`（没有则 1 秒），之后每次加倍并加随机抖动。",
            ),
            Self::WhenChanged => text(
                "Only when something has changed; never in a tight loop.",
                "只有情况变化后才值得再试，不要循环重试。",
            ),
        }
    }
}

impl Key {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::New => "new",
            Self::ByRecorded => "by_recorded",
            Self::Unneeded => "unneeded",
        }
    }

    pub(crate) const fn text(self) -> Text {
        match self {
            Self::Same => text("The same key.", "用同一个键。"),
            Self::New => text("A new key; this one is spent.", "换新键；这个键已经用掉。"),
            Self::ByRecorded => text(
                "`recorded: false`: the same key. `recorded: true`: a new one, for a new purchase.",
                "`recorded: false` 时用同一个键；`recorded: true` 时换新键，作为新的购买。",
            ),
            Self::Unneeded => text("None: there is nothing left to ask.", "不需要：没有什么可再请求的。"),
        }
    }
}

/// The guidance of a code.
pub(crate) const fn of(code: Code) -> &'static Guidance {
    match code {
        Code::MalformedJson => &request::MALFORMED_JSON,
        Code::UnknownField => &request::UNKNOWN_FIELD,
        Code::DuplicateField => &request::DUPLICATE_FIELD,
        Code::InvalidValue => &request::INVALID_VALUE,
        Code::InvalidQuantity => &request::INVALID_QUANTITY,
        Code::InvalidIdentifier => &request::INVALID_IDENTIFIER,
        Code::InvalidTime => &request::INVALID_TIME,
        Code::Unauthenticated => &request::UNAUTHENTICATED,
        Code::Forbidden => &request::FORBIDDEN,
        Code::NotFound => &request::NOT_FOUND,
        Code::UnknownSku => &request::UNKNOWN_SKU,
        Code::MethodNotAllowed => &request::METHOD_NOT_ALLOWED,
        Code::NotAcceptable => &request::NOT_ACCEPTABLE,
        Code::RequestTimeout => &request::REQUEST_TIMEOUT,
        Code::TooLarge => &request::TOO_LARGE,
        Code::UnsupportedMediaType => &request::UNSUPPORTED_MEDIA_TYPE,
        Code::SoldOut => &sale::SOLD_OUT,
        Code::AccountLimit => &sale::ACCOUNT_LIMIT,
        Code::AccountOpenHolds => &sale::ACCOUNT_OPEN_HOLDS,
        Code::CampaignNotOpen => &sale::CAMPAIGN_NOT_OPEN,
        Code::CampaignPaused => &sale::CAMPAIGN_PAUSED,
        Code::CampaignClosed => &sale::CAMPAIGN_CLOSED,
        Code::Frozen => &sale::FROZEN,
        Code::AlreadySold => &sale::ALREADY_SOLD,
        Code::AlreadyReleased => &sale::ALREADY_RELEASED,
        Code::AlreadyFailed => &sale::ALREADY_FAILED,
        Code::AlreadyRefunded => &sale::ALREADY_REFUNDED,
        Code::Cancelled => &sale::CANCELLED,
        Code::KeyLimit => &sale::KEY_LIMIT,
        Code::NotHeld => &sale::NOT_HELD,
        Code::NotSold => &sale::NOT_SOLD,
        Code::HoldExpired => &sale::HOLD_EXPIRED,
        Code::InReview => &sale::IN_REVIEW,
        Code::RefundExceedsSold => &sale::REFUND_EXCEEDS_SOLD,
        Code::StockInUse => &sale::STOCK_IN_USE,
        Code::AdmissionLost => &sale::ADMISSION_LOST,
        Code::QueueTimeout => &sale::QUEUE_TIMEOUT,
        Code::Conflict => &sale::CONFLICT,
        Code::OrderMismatch => &sale::ORDER_MISMATCH,
        Code::KeyMismatch => &sale::KEY_MISMATCH,
        Code::RateLimited => &server::RATE_LIMITED,
        Code::QueueFull => &server::QUEUE_FULL,
        Code::Internal => &server::INTERNAL,
        Code::Overloaded => &server::OVERLOADED,
        Code::AuthorityUnavailable => &server::AUTHORITY_UNAVAILABLE,
        Code::OutcomeUnknown => &server::OUTCOME_UNKNOWN,
        Code::CacheNotReady => &server::CACHE_NOT_READY,
        Code::StorageFull => &server::STORAGE_FULL,
        Code::ShuttingDown => &server::SHUTTING_DOWN,
    }
}

/// The guidance as JSON.
pub(crate) fn view(code: Code) -> ProblemKindView {
    let guidance = of(code);
    ProblemKindView {
        problem_type: code.problem_type().into(),
        code: code.as_str().into(),
        status: code.status(),
        title: code.title().into(),
        meaning: guidance.means.view(),
        recorded: guidance.recorded.as_str().into(),
        retryable: is_retryable(code),
        retry: guidance.retry.as_str().into(),
        wait: guidance.retry.text().view(),
        key: guidance.key.as_str().into(),
        buyer: guidance.buyer.view(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guidance_agrees_with_what_problems_say() {
        for code in Code::ALL {
            let guidance = of(*code);
            let may_succeed = matches!(guidance.retry, Retry::Soon | Retry::WhenChanged);
            assert_eq!(may_succeed, is_retryable(*code), "{code}");
            if matches!(code.status(), 429 | 503) {
                assert_eq!(guidance.retry, Retry::Soon, "{code} carries Retry-After");
            }
            if guidance.recorded == Recorded::Unknown {
                assert_eq!((guidance.retry, guidance.key), (Retry::Soon, Key::Same), "{code}");
            }
        }
    }

    #[test]
    fn every_text_is_in_both_languages() {
        let is_chinese = |text: &str| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
        for code in Code::ALL {
            for text in [of(*code).means, of(*code).buyer] {
                assert!(text.en.ends_with(['.', '?']) && !is_chinese(text.en), "{code}: {}", text.en);
                assert!(text.zh.ends_with(['。', '？']) && is_chinese(text.zh), "{code}: {}", text.zh);
            }
        }
    }
}
