//! Which problems may be gone later.

use holdfast_wire::Code;

/// Whether the same request may succeed later.
pub(crate) const fn is_retryable(code: Code) -> bool {
    match code {
        Code::RequestTimeout
        | Code::SoldOut
        | Code::AccountLimit
        | Code::AccountOpenHolds
        | Code::CampaignNotOpen
        | Code::CampaignPaused
        | Code::Frozen
        | Code::KeyLimit
        | Code::NotHeld
        | Code::NotSold
        | Code::InReview
        | Code::StockInUse
        | Code::RateLimited
        | Code::QueueFull
        | Code::Internal
        | Code::Overloaded
        | Code::AuthorityUnavailable
        | Code::OutcomeUnknown
        | Code::CacheNotReady
        | Code::StorageFull
        | Code::ShuttingDown => true,
        Code::MalformedJson
        | Code::UnknownField
        | Code::DuplicateField
        | Code::InvalidValue
        | Code::InvalidQuantity
        | Code::InvalidIdentifier
        | Code::InvalidTime
        | Code::Unauthenticated
        | Code::Forbidden
        | Code::NotFound
        | Code::UnknownSku
        | Code::MethodNotAllowed
        | Code::NotAcceptable
        | Code::TooLarge
        | Code::UnsupportedMediaType
        | Code::CampaignClosed
        | Code::AlreadySold
        | Code::AlreadyReleased
        | Code::AlreadyFailed
        | Code::AlreadyRefunded
        | Code::Cancelled
        | Code::HoldExpired
        | Code::RefundExceedsSold
        | Code::AdmissionLost
        | Code::QueueTimeout
        | Code::Conflict
        | Code::OrderMismatch
        | Code::KeyMismatch => false,
    }
}
