//! Hashes the keys that orders carry, so that a device or an address is stored by nobody. The hash is keyed with
//! the authority's salt and bound to the campaign and the name: the same device in two campaigns is two hashes.

use hmac::{Hmac, KeyInit, Mac};
use holdfast_core::id::{CampaignId, HashedKey, LimitKey, LimitName};
use holdfast_core::limit::LimitKeys;
use holdfast_store::{Error, Store};
use sha2::Sha256;
use std::collections::BTreeMap;
use tokio::sync::OnceCell;

/// Hashes keys; reads the salt when the first comes.
#[derive(Default)]
pub(crate) struct Hashing(OnceCell<[u8; 32]>);

impl Hashing {
    /// Reads the salt before the first keys come.
    pub(crate) async fn warm(&self, store: &dyn Store) -> Result<(), Error> {
        self.0.get_or_try_init(|| store.limit_salt()).await?;
        Ok(())
    }

    /// The keys of an order, hashed.
    pub(crate) async fn keys(
        &self,
        store: &dyn Store,
        campaign: &CampaignId,
        keys: &BTreeMap<LimitName, LimitKey>,
    ) -> Result<LimitKeys, Error> {
        if keys.is_empty() {
            return Ok(LimitKeys::new());
        }
        let salt = self.0.get_or_try_init(|| store.limit_salt()).await?;
        keys.iter().map(|(name, key)| Ok((name.clone(), hashed(salt, campaign, name, key)?))).collect()
    }
}

fn hashed(
    salt: &[u8; 32],
    campaign: &CampaignId,
    name: &LimitName,
    key: &LimitKey,
) -> Result<HashedKey, Error> {
    let mac = Hmac::<Sha256>::new_from_slice(salt).map_err(|error| Error::Corrupt(error.to_string()))?;
    // No identifier holds a NUL, so the parts cannot run into each other.
    let text = [campaign.as_str(), name.as_str(), key.as_str()].join("\0");
    let bytes = mac.chain_update(text.as_bytes()).finalize().into_bytes();
    let half = bytes.first_chunk::<16>().ok_or_else(|| Error::Corrupt("a short hash".into()))?;
    Ok(HashedKey(u128::from_be_bytes(*half)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_bound_to_salt_campaign_name_and_key() {
        let hash = |salt: u8, campaign: &str, name: &str, key: &str| {
            let (campaign, name) = (CampaignId::new(campaign).unwrap(), LimitName::new(name).unwrap());
            hashed(&[salt; 32], &campaign, &name, &LimitKey::new(key).unwrap()).unwrap()
        };
        let first = hash(1, "c", "device", "x");
        assert_eq!(first, hash(1, "c", "device", "x"));
        for other in [
            hash(2, "c", "device", "x"),
            hash(1, "d", "device", "x"),
            hash(1, "c", "devicex", "x"),
            hash(1, "c", "device", "X"),
        ] {
            assert_ne!(first, other);
        }
    }
}
