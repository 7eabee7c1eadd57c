//! Tickets: what an accepted order's buyer keeps, so that any node can say what became of it, also after the
//! cache is gone. Signed with a key that every node derives from the authority; it holds no secret and allows
//! nothing but the question.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use holdfast_core::cache::{Accepted, EntryId, Epoch};
use holdfast_core::id::{CampaignId, OrderId, OrderKey, OrderNo, PoolId};
use holdfast_core::stock::BucketKey;
use holdfast_store::{Error, Store};
use sha2::Sha256;
use tokio::sync::OnceCell;

const VERSION: u8 = 1;
/// What the authority's salt is hashed with to become the key: it is used for other things too.
const PURPOSE: &[u8] = b"holdfast ticket 1";
/// Bytes of the signature: guessing one is out of reach, and what it would allow is a question.
const MAC_BYTES: usize = 16;
/// The longest text that may be a ticket: names of 128 characters of 4 bytes each, and some.
const TEXT_MAX: usize = 2_048;

/// What an accepted order's buyer knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Where it was accepted.
    pub accepted: Accepted,
    /// The order's id, if it becomes one.
    pub order: OrderId,
    /// Its business key.
    pub key: OrderKey,
}

/// Signs tickets and knows its own; reads the salt when the first is asked for.
#[derive(Default)]
pub(crate) struct Tickets(OnceCell<Hmac<Sha256>>);

impl Tickets {
    async fn mac(&self, store: &dyn Store) -> Result<Hmac<Sha256>, Error> {
        let mac = self.0.get_or_try_init(|| async {
            let corrupt = |error: hmac::digest::InvalidLength| Error::Corrupt(error.to_string());
            let salt = store.limit_salt().await?;
            let key =
                Hmac::<Sha256>::new_from_slice(&salt).map_err(corrupt)?.chain_update(PURPOSE).finalize();
            Hmac::<Sha256>::new_from_slice(&key.into_bytes()).map_err(corrupt)
        });
        mac.await.cloned()
    }

    /// The ticket's text.
    pub(crate) async fn sign(&self, store: &dyn Store, ticket: &Ticket) -> Result<String, Error> {
        let mut bytes = write(ticket);
        let mac = self.mac(store).await?.chain_update(&bytes).finalize().into_bytes();
        bytes.extend(mac.iter().take(MAC_BYTES));
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// What a text says, if it is a ticket of this authority.
    pub(crate) async fn read(&self, store: &dyn Store, text: &str) -> Result<Option<Ticket>, Error> {
        if text.len() > TEXT_MAX {
            return Ok(None);
        }
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(text) else { return Ok(None) };
        let Some((content, signature)) = bytes.split_last_chunk::<MAC_BYTES>() else { return Ok(None) };
        let mac = self.mac(store).await?.chain_update(content);
        Ok(mac.verify_truncated_left(signature).ok().and_then(|()| read(content)))
    }
}

fn write(ticket: &Ticket) -> Vec<u8> {
    let Ticket { accepted, order, key } = ticket;
    let Accepted { bucket, epoch, entry, number, units } = accepted;
    let campaign = key.campaign.as_str().as_bytes();
    let mut bytes = vec![VERSION];
    bytes.extend(bucket.pool.0.to_be_bytes());
    bytes.extend(bucket.number.to_be_bytes());
    for part in [epoch.0, entry.millis, entry.number, *number, *units] {
        bytes.extend(part.to_be_bytes());
    }
    bytes.extend(order.0.to_be_bytes());
    // An identifier has at most 128 characters, so this fits.
    bytes.extend(u16::try_from(campaign.len()).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend(campaign);
    bytes.extend(key.order_no.as_str().as_bytes());
    bytes
}

/// What is left to read.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn text(&mut self, bytes: usize) -> Option<&'b str> {
        let (first, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        std::str::from_utf8(first).ok()
    }
}

fn read(content: &[u8]) -> Option<Ticket> {
    let mut rest = Rest(content);
    if rest.array::<1>()? != [VERSION] {
        return None;
    }
    let pool = PoolId(u128::from_be_bytes(rest.array()?));
    let bucket = BucketKey { pool, number: u32::from_be_bytes(rest.array()?) };
    let mut part = || Some(u64::from_be_bytes(rest.array()?));
    let epoch = Epoch(part()?);
    let entry = EntryId { millis: part()?, number: part()? };
    let accepted = Accepted { bucket, epoch, entry, number: part()?, units: part()? };
    let order = OrderId(u128::from_be_bytes(rest.array()?));
    let campaign = usize::from(u16::from_be_bytes(rest.array()?));
    let campaign = CampaignId::new(rest.text(campaign)?).ok()?;
    let order_no = OrderNo::new(rest.text(rest.0.len())?).ok()?;
    Some(Ticket { accepted, order, key: OrderKey { campaign, order_no } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let bucket = BucketKey { pool: PoolId(7), number: 3 };
        let entry = EntryId { millis: 1_700_000_000_000, number: 5 };
        Ticket {
            accepted: Accepted { bucket, epoch: Epoch(2), entry, number: 9, units: 4 },
            order: OrderId(u128::MAX),
            key: OrderKey {
                campaign: CampaignId::new("夏の drop").unwrap(),
                order_no: OrderNo::new("A-1").unwrap(),
            },
        }
    }

    #[test]
    fn a_ticket_is_read_as_it_was_written_and_in_no_other_way() {
        let bytes = write(&ticket());
        assert_eq!(read(&bytes), Some(ticket()));
        let fixed = bytes.len() - "夏の drop".len() - "A-1".len();
        for end in 0..fixed {
            assert_eq!(read(&bytes[..end]), None, "cut at {end}");
        }
        let mut later = bytes;
        later[0] = VERSION + 1;
        assert_eq!(read(&later), None);
    }
}
