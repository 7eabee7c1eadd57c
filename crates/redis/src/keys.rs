//! A bucket's four keys, and the slot in which they lie together.

use std::fmt::Write as _;

use holdfast_core::stock::BucketKey;

/// Slots of a Cluster.
const SLOTS: u16 = 16_384;

/// The consumer group of a bucket's stream.
pub(crate) const GROUP: &str = "landing";

/// The keys of one bucket, which share a hash tag.
#[derive(Debug)]
pub(crate) struct Keys {
    tag: String,
    /// In the order in which every script takes them: cache, orders, accounts, stream.
    pub(crate) all: [String; 4],
}

impl Keys {
    pub(crate) fn of(instance: &str, bucket: BucketKey) -> Self {
        let mut tag = String::from("hf:");
        if !instance.is_empty() {
            tag.push_str(instance);
            tag.push(':');
        }
        // Writing to a string cannot fail.
        let _ = write!(tag, "{}:{}", bucket.pool, bucket.number);
        let key = |part: &str| format!("{{{tag}}}:{part}");
        Self { all: [key("cache"), key("orders"), key("accounts"), key("stream")], tag }
    }

    pub(crate) fn cache(&self) -> &str {
        let [cache, ..] = &self.all;
        cache
    }

    pub(crate) fn stream(&self) -> &str {
        let [.., stream] = &self.all;
        stream
    }

    /// Where a Cluster keeps them.
    pub(crate) fn slot(&self) -> u16 {
        crc16(self.tag.as_bytes()) % SLOTS
    }
}

/// Where a Cluster keeps a key of any form: by the part in its first braces, if there is one.
pub(crate) fn slot_of(key: &str) -> u16 {
    let tagged = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    crc16(tagged.filter(|tag| !tag.is_empty()).unwrap_or(key).as_bytes()) % SLOTS
}

/// CRC-16 as XMODEM has it: by this a Cluster spreads keys.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        let mixed = crc ^ (u16::from(*byte) << 8);
        (0..8).fold(mixed, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 })
    })
}

#[cfg(test)]
mod tests {
    use holdfast_core::id::PoolId;

    use super::*;

    #[test]
    fn a_buckets_keys_share_a_tag_that_names_instance_pool_and_bucket() {
        let bucket = BucketKey { pool: PoolId(0xff), number: 3 };
        let keys = Keys::of("", bucket);
        assert_eq!(keys.cache(), "{hf:00000000-0000-0000-0000-0000000000ff:3}:cache");
        assert_eq!(keys.stream(), "{hf:00000000-0000-0000-0000-0000000000ff:3}:stream");
        assert_eq!(Keys::of("eu", bucket).tag, "hf:eu:00000000-0000-0000-0000-0000000000ff:3");
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b"foo") % SLOTS, 12_182);
    }
}
