//! The keys that the node knows: a copy of those that are live in the store, bounded by the store, never
//! older than a second, and read anew at once when this node itself changes one. A key that is not in it
//! opens nothing, so a flood of invented keys costs no look-up.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_core::time::Timestamp;
use holdfast_store::{Error, KEY_ID_CHARS, KeyId, KeyRow, Store};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How a key begins, so that people and scanners know one when they see it.
const PREFIX: &str = "hfk_";
/// Characters of a key's secret: 256 bits in base64.
const SECRET_CHARS: usize = 43;
/// At this age the copy is read anew beside the requests that use it.
const STALE: Duration = Duration::from_millis(500);
/// From this age on it is not used any more.
const AGE_MAX: Duration = Duration::from_millis(950);

/// A key that was just made. Its text is shown once and kept nowhere.
pub struct NewKey {
    /// The part that is no secret.
    pub id: KeyId,
    /// What is stored.
    pub secret_sha256: [u8; 32],
    text: String,
}

impl NewKey {
    /// A key nobody can guess; an error if the system has no randomness.
    pub fn random() -> Result<Self, getrandom::Error> {
        let (mut number, mut secret) = ([0; KEY_ID_CHARS], [0; 32]);
        getrandom::fill(&mut number)?;
        getrandom::fill(&mut secret)?;
        let id: String = number.iter().map(|byte| base32(*byte)).collect();
        let secret = URL_SAFE_NO_PAD.encode(secret);
        Ok(Self {
            // The alphabet of ids holds all of base 32.
            id: KeyId::new(&id).ok_or(getrandom::Error::UNEXPECTED)?,
            secret_sha256: hash(secret.as_bytes()),
            text: format!("{PREFIX}{id}_{secret}"),
        })
    }

    /// The key as its owner sends it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewKey({PREFIX}{}_…)", self.id)
    }
}

/// A digit of base 32, from the low bits.
fn base32(byte: u8) -> char {
    let digit = byte & 31;
    char::from(if digit < 26 { b'a' + digit } else { b'2' + (digit - 26) })
}

fn hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// Takes a key apart; none if it has another form.
fn parse(key: &[u8]) -> Option<(KeyId, &[u8])> {
    let (id, rest) = key.strip_prefix(PREFIX.as_bytes())?.split_at_checked(KEY_ID_CHARS)?;
    let secret = rest.strip_prefix(b"_")?;
    let id = KeyId::new(std::str::from_utf8(id).ok()?)?;
    (secret.len() == SECRET_CHARS).then_some((id, secret))
}

/// A live key, and the name under which its owner acts.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) row: KeyRow,
    pub(crate) actor: Arc<str>,
}

#[derive(Default)]
struct Copy {
    /// None: to be read before it is used.
    read_at: Option<Instant>,
    /// How often this node changed a key: what was read before a change must not come after it.
    generation: u64,
    keys: Arc<HashMap<KeyId, Arc<Known>>>,
}

/// The node's copy.
#[derive(Default)]
pub(crate) struct Keyring {
    copy: Mutex<Copy>,
    /// Held while the copy is read anew, so that this happens once and not once a request.
    reading: tokio::sync::Mutex<()>,
}

impl Keyring {
    /// The live key with this text, if it is one.
    pub(crate) async fn find(&self, store: &dyn Store, key: &[u8]) -> Result<Option<Arc<Known>>, Error> {
        // A secret that is nobody's, so that an unknown id takes as long as a wrong secret.
        static NOBODY: LazyLock<[u8; 32]> = LazyLock::new(|| hash(b"nobody"));
        let Some((id, secret)) = parse(key) else { return Ok(None) };
        let known = self.keys(store).await?.get(&id).cloned();
        let expected = known.as_ref().map_or(&*NOBODY, |known| &known.row.secret_sha256);
        let fits = bool::from(hash(secret).ct_eq(expected));
        let now: Timestamp = store.now();
        Ok(known.filter(|known| fits && known.row.is_live(now)))
    }

    /// The copy, read anew if it is too old.
    async fn keys(&self, store: &dyn Store) -> Result<Arc<HashMap<KeyId, Arc<Known>>>, Error> {
        if let Some(keys) = self.young(AGE_MAX) {
            return Ok(keys);
        }
        let _reading = self.reading.lock().await;
        loop {
            // Whoever held the lock before may have done it.
            if let Some(keys) = self.young(AGE_MAX) {
                return Ok(keys);
            }
            self.read(store).await?;
        }
    }

    /// Reads the copy anew while it can still be used, if it is time and nobody does. What goes wrong is
    /// told to the request that needs it next.
    pub(crate) async fn freshen(&self, store: &dyn Store) {
        let Ok(_reading) = self.reading.try_lock() else { return };
        if self.is_stale() {
            let _ = self.read(store).await;
        }
    }

    /// Whether it is time to [`freshen`](Self::freshen).
    pub(crate) fn is_stale(&self) -> bool {
        self.young(STALE).is_none() && self.young(AGE_MAX).is_some()
    }

    fn young(&self, age_max: Duration) -> Option<Arc<HashMap<KeyId, Arc<Known>>>> {
        let copy = self.copy();
        let is_young = copy.read_at.is_some_and(|at| at.elapsed() < age_max);
        is_young.then(|| Arc::clone(&copy.keys))
    }

    async fn read(&self, store: &dyn Store) -> Result<(), Error> {
        let (began, generation) = (Instant::now(), self.copy().generation);
        let rows = store.live_keys().await?;
        let known = rows.into_iter().map(|row| {
            let actor = Arc::from(format!("{} ({PREFIX}{})", row.name, row.id));
            (row.id.clone(), Arc::new(Known { row, actor }))
        });
        let keys = Arc::new(known.collect());
        let mut copy = self.copy();
        if copy.generation == generation {
            (copy.read_at, copy.keys) = (Some(began), keys);
        }
        Ok(())
    }

    /// Makes the next request read anew: this node has changed a key.
    pub(crate) fn forget(&self) {
        let mut copy = self.copy();
        copy.read_at = None;
        copy.generation = copy.generation.wrapping_add(1);
    }

    fn copy(&self) -> std::sync::MutexGuard<'_, Copy> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the log of failed authentications: how many, at most once a second, and never with what.
#[derive(Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    told_at: Mutex<Option<Instant>>,
}

impl Failures {
    const INTERVAL: Duration = Duration::from_secs(1);

    /// One more.
    pub(crate) fn note(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut told_at = self.told_at.lock().unwrap_or_else(PoisonError::into_inner);
        if told_at.is_none_or(|at| at.elapsed() >= Self::INTERVAL) {
            *told_at = Some(Instant::now());
            drop(told_at);
            let count = self.count.swap(0, Ordering::Relaxed);
            tracing::warn!(count, "authentications failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_is_taken_apart_as_it_was_put_together() {
        for _ in 0..100 {
            let new = NewKey::random().expect("randomness");
            assert_eq!(new.text().len(), 64);
            let (id, secret) = parse(new.text().as_bytes()).expect("a key");
            assert_eq!((id, hash(secret)), (new.id.clone(), new.secret_sha256));
            assert!(!format!("{new:?}").contains(std::str::from_utf8(secret).expect("text")));
        }
    }

    #[test]
    fn other_forms_are_no_keys() {
        let good = NewKey::random().expect("randomness").text().to_owned();
        let upper = good.to_uppercase();
        let old = format!("hfk_{}", "0".repeat(64));
        for bad in ["", "hfk_", &good[1..], &good[..63], &format!("{good}x"), &upper, &old, "hfk_é"] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
