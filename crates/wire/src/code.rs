//! The codes of problems: stable text for programs, with the status and the title of each.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, $title:literal;)*) => {
        /// What went wrong, in a word that never changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The code as JSON spells it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// The HTTP status that goes with it.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status),* }
            }

            /// A short text for people, the same for every occurrence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title),* }
            }

            /// The address that names the kind of problem.
            pub const fn problem_type(self) -> &'static str {
                match self { $(Self::$name => concat!("/problems/", $text)),* }
            }

            /// The code with this spelling.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

codes! {
    /// The body is not JSON.
    MalformedJson = "malformed_json", 400, "The body is not valid JSON";
    /// A field or parameter that does not exist.
    UnknownField = "unknown_field", 400, "A field is not known";
    /// A key stands twice in one object.
    DuplicateField = "duplicate_field", 400, "A field stands twice";
    /// A value is missing, of the wrong kind or not allowed.
    InvalidValue = "invalid_value", 400, "A value is not valid";
    /// A quantity is missing or not allowed.
    InvalidQuantity = "invalid_quantity", 400, "A quantity is not valid";
    /// An identifier is missing or not allowed.
    InvalidIdentifier = "invalid_identifier", 400, "An identifier is not valid";
    /// A time is missing or not a definite instant.
    InvalidTime = "invalid_time", 400, "A time is not valid";
    /// No key, a wrong key, or a signature that does not verify.
    Unauthenticated = "unauthenticated", 401, "The request is not authenticated";
    /// The key may not do this.
    Forbidden = "forbidden", 403, "The key does not allow this";
    /// There is no such thing.
    NotFound = "not_found", 404, "Not found";
    /// The campaign has no pool of this SKU and location.
    UnknownSku = "unknown_sku", 404, "The SKU is not sold in this campaign";
    /// The route has no such method.
    MethodNotAllowed = "method_not_allowed", 405, "The method is not allowed here";
    /// No form that the client accepts.
    NotAcceptable = "not_acceptable", 406, "No acceptable representation";
    /// The body did not arrive in time.
    RequestTimeout = "request_timeout", 408, "The request did not arrive in time";
    /// The body is too long.
    TooLarge = "too_large", 413, "The body is too large";
    /// The body is not `application/json`, or is encoded.
    UnsupportedMediaType = "unsupported_media_type", 415, "The media type is not supported";
    /// Too little stock.
    SoldOut = "sold_out", 409, "Sold out";
    /// The account may not have as many units.
    AccountLimit = "account_limit", 409, "The account's limit is reached";
    /// The account has too many open holds.
    AccountOpenHolds = "account_open_holds", 409, "The account has too many open holds";
    /// The campaign is a draft or has not begun.
    CampaignNotOpen = "campaign_not_open", 409, "The campaign is not open";
    /// The campaign is paused.
    CampaignPaused = "campaign_paused", 409, "The campaign is paused";
    /// The campaign is over.
    CampaignClosed = "campaign_closed", 409, "The campaign is closed";
    /// The campaign or the pool is frozen.
    Frozen = "frozen", 409, "Stock is frozen";
    /// The order is sold.
    AlreadySold = "already_sold", 409, "The order is already sold";
    /// The order was released.
    AlreadyReleased = "already_released", 409, "The order is already released";
    /// The order failed.
    AlreadyFailed = "already_failed", 409, "The order has already failed";
    /// The order was refunded.
    AlreadyRefunded = "already_refunded", 409, "The order is already refunded";
    /// The order was cancelled.
    Cancelled = "cancelled", 409, "The order was cancelled";
    /// A named key's limit is reached.
    KeyLimit = "key_limit", 409, "A key's limit is reached";
    /// The order holds nothing.
    NotHeld = "not_held", 409, "The order is not held";
    /// The order is not sold.
    NotSold = "not_sold", 409, "The order is not sold";
    /// The hold has ended.
    HoldExpired = "hold_expired", 409, "The hold has ended";
    /// A person or the provider must decide first.
    InReview = "in_review", 409, "The order is in review";
    /// More units than the line still has.
    RefundExceedsSold = "refund_exceeds_sold", 409, "The refund exceeds what is sold";
    /// The stock is held or sold.
    StockInUse = "stock_in_use", 409, "The stock is in use";
    /// The admission was lost with the cache.
    AdmissionLost = "admission_lost", 409, "The admission was lost";
    /// The order waited too long in the queue.
    QueueTimeout = "queue_timeout", 409, "The order waited too long";
    /// The request does not fit what is there.
    Conflict = "conflict", 409, "The request conflicts with what is there";
    /// The same order number with other content.
    OrderMismatch = "order_mismatch", 422, "The order number belongs to other content";
    /// The same key with other content.
    KeyMismatch = "key_mismatch", 422, "The key belongs to other content";
    /// Too many requests.
    RateLimited = "rate_limited", 429, "Too many requests";
    /// The queue is full.
    QueueFull = "queue_full", 429, "The queue is full";
    /// A fault of the server: a bug.
    Internal = "internal", 500, "Internal error";
    /// The server has too much to do; nothing was done.
    Overloaded = "overloaded", 503, "The server is overloaded";
    /// The authority does not answer; nothing was done.
    AuthorityUnavailable = "authority_unavailable", 503, "The authority is unavailable";
    /// Whether it was done is unknown: ask again with the same key.
    OutcomeUnknown = "outcome_unknown", 503, "The outcome is unknown";
    /// The cache is not ready.
    CacheNotReady = "cache_not_ready", 503, "The cache is not ready";
    /// The authority has no space left.
    StorageFull = "storage_full", 503, "The storage is full";
    /// The server is going down.
    ShuttingDown = "shutting_down", 503, "The server is shutting down";
}

/// The text is no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseCodeError;

impl fmt::Display for ParseCodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a problem code")
    }
}

impl std::error::Error for ParseCodeError {}

impl std::str::FromStr for Code {
    type Err = ParseCodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or(ParseCodeError)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_an_error_and_reads_back() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(*code));
            assert!(code.status() >= 400);
            assert_eq!(code.problem_type(), format!("/problems/{code}"));
        }
        assert_eq!(Code::parse("nonsense"), None);
    }
}
