//! The keys that this node knows to exist: 64-bit hashes, complete once every stored key was read. What is
//! not among them is provably new, and can be refused without asking the database; what is among them is
//! looked up.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use holdfast_core::id::OrderKey;

/// The hashes are random already; hashing them again would only cost time.
#[derive(Debug, Clone, Copy, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// The node's known keys.
#[derive(Default)]
pub(crate) struct KnownKeys {
    hashes: RwLock<HashSet<u64, BuildHasherDefault<AsIs>>>,
    complete: AtomicBool,
}

impl KnownKeys {
    /// Keeps a key, before it can exist: a key that came to nothing costs one look-up, one that was
    /// forgotten would cost the truth. Whether it was met before.
    pub(crate) fn keep(&self, key: &OrderKey) -> bool {
        !self.hashes.write().unwrap_or_else(PoisonError::into_inner).insert(hash(key))
    }

    /// Keeps keys that are stored.
    pub(crate) fn keep_all(&self, keys: &[OrderKey]) {
        let mut hashes = self.hashes.write().unwrap_or_else(PoisonError::into_inner);
        hashes.extend(keys.iter().map(hash));
    }

    /// Every stored key was read.
    pub(crate) fn complete(&self) {
        self.complete.store(true, Ordering::SeqCst);
    }

    /// Whether the key cannot exist.
    pub(crate) fn is_provably_new(&self, key: &OrderKey) -> bool {
        self.complete.load(Ordering::SeqCst)
            && !self.hashes.read().unwrap_or_else(PoisonError::into_inner).contains(&hash(key))
    }
}

/// FNV-1a over both parts, with a final mix. The parts are set apart by a byte that neither can hold.
fn hash(key: &OrderKey) -> u64 {
    hash_bytes(key.campaign.as_str().bytes().chain([0]).chain(key.order_no.as_str().bytes()))
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// The same on every node and in every version, so that a repeat meets the lock of the bucket that has its
/// order.
pub(crate) fn stable_hash(text: &str) -> u64 {
    hash_bytes(text.bytes())
}

fn hash_bytes(bytes: impl Iterator<Item = u8>) -> u64 {
    mix(bytes.fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)))
}

/// Spreads what a hash or a count leaves in the low bits over all of them.
pub(crate) const fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use holdfast_core::id::{CampaignId, OrderNo};

    use super::*;

    fn key(campaign: &str, order_no: &str) -> OrderKey {
        OrderKey { campaign: CampaignId::new(campaign).unwrap(), order_no: OrderNo::new(order_no).unwrap() }
    }

    #[test]
    fn nothing_is_provably_new_until_every_key_was_read() {
        let keys = KnownKeys::default();
        assert!(!keys.is_provably_new(&key("c", "1")));
        keys.keep(&key("c", "2"));
        keys.keep_all(&[key("c", "3")]);
        keys.complete();
        assert!(keys.is_provably_new(&key("c", "1")));
        assert!(keys.is_provably_new(&key("d", "2")), "the campaign is part of the key");
        assert!(!keys.is_provably_new(&key("c", "2")));
        assert!(!keys.is_provably_new(&key("c", "3")));
    }

    #[test]
    fn hashes_of_neighbours_are_spread() {
        let hashes: HashSet<u64> = (0..100_000).map(|n| hash(&key("c", &format!("order-{n}")))).collect();
        assert_eq!(hashes.len(), 100_000);
        let low: HashSet<u64> = hashes.iter().map(|h| h & 0xff).collect();
        assert_eq!(low.len(), 256);
        let buckets = (0..8_000).fold([0_u32; 8], |mut counts, n| {
            counts[usize::try_from(stable_hash(&format!("o{n}")) % 8).unwrap()] += 1;
            counts
        });
        assert!(buckets.iter().all(|count| (800..1_200).contains(count)), "{buckets:?}");
    }
}
