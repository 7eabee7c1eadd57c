//! Positions of the pull feed: a place in several ledgers at once, as a text that is not to be taken apart. What a
//! consumer makes up is held against the ledgers by whoever takes it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_core::id::PoolId;
use holdfast_core::stock::BucketKey;
use holdfast_engine::Pulled;

/// The form of these positions.
const VERSION: u8 = 1;
/// Most buckets that one names.
const BUCKETS_MAX: usize = 512;

/// Writes a position. Places stand in order, so the buckets of a pool stand together.
pub(crate) fn encode(position: &Pulled) -> String {
    let mut bytes = vec![VERSION];
    put(&mut bytes, position.round);
    let mut pool = None;
    for (bucket, seq) in &position.places {
        let is_new = pool.replace(bucket.pool) != Some(bucket.pool);
        // One more than the number, so that 0 can begin a pool.
        if is_new {
            put(&mut bytes, 0);
            bytes.extend(bucket.pool.0.to_be_bytes());
        }
        put(&mut bytes, u64::from(bucket.number).saturating_add(1));
        put(&mut bytes, *seq);
    }
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a position back.
pub(crate) fn decode(text: &str) -> Option<Pulled> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (version, mut rest) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    let round = take(&mut rest)?;
    let mut places = BTreeMap::new();
    let mut pool = None;
    while !rest.is_empty() {
        let number = take(&mut rest)?;
        if number == 0 {
            let (id, after) = rest.split_first_chunk::<16>()?;
            rest = after;
            pool = Some(PoolId(u128::from_be_bytes(*id)));
            continue;
        }
        let number = u32::try_from(number.saturating_sub(1)).ok()?;
        let seq = take(&mut rest)?;
        places.insert(BucketKey { pool: pool?, number }, seq);
        if places.len() > BUCKETS_MAX {
            return None;
        }
    }
    Some(Pulled { round, places })
}

/// Writes a number in as few bytes as it needs, seven bits each.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        bytes.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return;
        }
    }
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for place in 0..10_u32 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let low = u64::from(byte & 0x7f);
        number |= low.checked_mul(1_u64.checked_shl(place.saturating_mul(7))?)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_as_it_was() {
        let places = [(1, 0, 0), (1, 255, 1), (2, 3, 127), (2, 4, 128), (9, 0, u64::MAX >> 1)];
        let place = |(pool, number, seq)| (BucketKey { pool: PoolId(pool), number }, seq);
        for round in [0, 1, 300] {
            let position = Pulled { round, places: places.map(place).into() };
            assert_eq!(decode(&encode(&position)), Some(position));
        }
        assert_eq!(decode(&encode(&Pulled::default())), Some(Pulled::default()));
    }

    #[test]
    fn a_pool_with_every_bucket_fits() {
        let place = |number| (BucketKey { pool: PoolId(u128::MAX), number }, 9_999_999);
        let position = Pulled { round: 1, places: (0..256).map(place).collect() };
        assert!(encode(&position).len() < super::super::sinks::POSITION_CHARS_MAX);
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for bad in ["", "AA", "!!", "Ag", "AQ", "AQEA", "AQEAAAAA", "AQEFBQ"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
        let endless =
            URL_SAFE_NO_PAD.encode([VERSION, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(decode(&endless), None);
    }
}
