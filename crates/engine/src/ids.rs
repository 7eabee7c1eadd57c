//! Where ids come from: injected, so that tests can foresee them.

/// Makes ids that rise with time.
pub trait IdSource: Send + Sync + 'static {
    /// The next id.
    fn next(&self) -> u128;
}

/// UUIDs of version 7.
#[derive(Debug, Clone, Copy, Default)]
pub struct UuidV7;

impl IdSource for UuidV7 {
    #[expect(clippy::disallowed_methods, reason = "this is the one place where ids are made")]
    fn next(&self) -> u128 {
        uuid::Uuid::now_v7().as_u128()
    }
}
