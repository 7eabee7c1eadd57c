//! Cursors: the key of a page's last item, bound to the list and its filters. Opaque, not secret: whoever
//! makes one up only asks for another page of a list that they may read anyway.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_core::approval::ApprovalKey;
use holdfast_core::id::{CampaignId, CaseId, DiscrepancyId, OrderId, PoolId, RunId};
use holdfast_core::stock::BucketKey;
use holdfast_store::{ActId, KeyId, LedgerPosition};

/// The form of these cursors. Another form must be refused, not misread.
const VERSION: u8 = 1;
/// How much of the filters' hash a cursor carries: enough against mistakes.
const HASH_BYTES: usize = 8;
/// Longest cursor that is looked at: the longest key is a word, an order and an identifier of 128 characters.
const TEXT_BYTES_MAX: usize = 1_024;

/// The key by which a list is ordered.
pub(crate) trait Key: Sized {
    /// Names the list, so that cursors of two lists never mix.
    const LIST: u8;

    /// Writes the key.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads it back.
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Key for OrderId {
    const LIST: u8 = b'o';

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(u128::from_be_bytes(bytes)))
    }
}

impl Key for PoolId {
    const LIST: u8 = b'p';

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(u128::from_be_bytes(bytes)))
    }
}

impl Key for CaseId {
    const LIST: u8 = b's';

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(u128::from_be_bytes(bytes)))
    }
}

impl Key for RunId {
    const LIST: u8 = b'r';

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(u128::from_be_bytes(bytes)))
    }
}

impl Key for DiscrepancyId {
    const LIST: u8 = b'd';

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(u128::from_be_bytes(bytes)))
    }
}

impl Key for CampaignId {
    const LIST: u8 = b'c';

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.as_str().bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::new(std::str::from_utf8(bytes).ok()?).ok()
    }
}

impl Key for ApprovalKey {
    const LIST: u8 = b'v';

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.as_str().bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::parse(std::str::from_utf8(bytes).ok()?)
    }
}

impl Key for KeyId {
    const LIST: u8 = b'k';

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.as_str().bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::new(std::str::from_utf8(bytes).ok()?)
    }
}

impl Key for ActId {
    const LIST: u8 = b'a';

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(u64::from_be_bytes(bytes)))
    }
}

impl Key for LedgerPosition {
    const LIST: u8 = b'l';

    fn write(&self, bytes: &mut Vec<u8>) {
        let (bucket, seq) = self;
        bytes.extend(bucket.pool.0.to_be_bytes());
        bytes.extend(bucket.number.to_be_bytes());
        bytes.extend(seq.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (pool, rest) = bytes.split_first_chunk::<16>()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let seq = rest.try_into().ok().map(u64::from_be_bytes)?;
        let pool = PoolId(u128::from_be_bytes(*pool));
        Some((BucketKey { pool, number: u32::from_be_bytes(*number) }, seq))
    }
}

/// Makes and reads the cursors of one list with its filters.
#[derive(Debug)]
pub(crate) struct Cursor {
    head: Vec<u8>,
}

impl Cursor {
    /// For the list of `K`, with a hash of its filters.
    pub(crate) fn of<K: Key>(filters: [u8; 32]) -> Self {
        let mut head = vec![VERSION, K::LIST];
        head.extend(filters.iter().take(HASH_BYTES));
        Self { head }
    }

    /// The cursor after `key`.
    pub(crate) fn encode<K: Key>(&self, key: &K) -> String {
        let mut bytes = self.head.clone();
        key.write(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The key in a cursor; none if it is not one of this list.
    pub(crate) fn decode<K: Key>(&self, text: &str) -> Option<K> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        K::read(bytes.strip_prefix(self.head.as_slice())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back() {
        let filters = [7; 32];
        let position = (BucketKey { pool: PoolId(u128::MAX - 5), number: 255 }, u64::MAX);
        let cursor = Cursor::of::<LedgerPosition>(filters);
        assert_eq!(cursor.decode::<LedgerPosition>(&cursor.encode(&position)), Some(position));
        let campaign = CampaignId::new(&"é".repeat(128)).expect("an id");
        let cursor = Cursor::of::<CampaignId>(filters);
        assert_eq!(cursor.decode::<CampaignId>(&cursor.encode(&campaign)), Some(campaign));
    }

    #[test]
    fn what_is_not_a_cursor_of_the_list_is_refused() {
        let orders = Cursor::of::<OrderId>([1; 32]);
        let text = orders.encode(&OrderId(5));
        assert_eq!(Cursor::of::<PoolId>([1; 32]).decode::<PoolId>(&text), None);
        assert_eq!(Cursor::of::<OrderId>([2; 32]).decode::<OrderId>(&text), None);
        let shortened = text.get(..text.len() - 2).expect("ASCII");
        for bad in ["", "AA", "!", shortened, &format!("{text}AA"), &"A".repeat(5_000)] {
            assert_eq!(orders.decode::<OrderId>(bad), None, "{bad}");
        }
    }
}
