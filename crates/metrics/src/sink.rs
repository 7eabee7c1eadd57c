//! What a node measures of the sinks that it delivers to.

crate::label! {
    /// What came of a delivery.
    SinkAttempt as "result" {
        /// The receiver took it.
        Taken = "taken",
        /// The receiver did not take these events.
        Refused = "refused",
        /// The receiver could not be reached, or takes nothing now.
        Failed = "failed",
    }
}
