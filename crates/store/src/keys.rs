//! Keys of the API, their roles and the campaigns that they open. Of a key's secret only the hash is kept.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use holdfast_core::command::Via;
use holdfast_core::id::CampaignId;
use holdfast_core::time::Timestamp;

/// Characters of a key's id.
pub const KEY_ID_CHARS: usize = 16;
/// Most keys that are live at the same time: a node keeps them all in memory.
pub const LIVE_KEYS_MAX: usize = 10_000;
/// Most campaigns that a key names.
pub const SCOPE_CAMPAIGNS_MAX: usize = 100;

/// What whoever has a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Place, cancel and begin to pay orders, and read them.
    Buyer,
    /// Say that payments were made or failed.
    Payments,
    /// Read.
    Read,
    /// Read, buy, and run campaigns: switches, pools, adjustments, freezes.
    Operator,
    /// Everything, keys included.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: &'static [Self] = &[Self::Buyer, Self::Payments, Self::Read, Self::Operator, Self::Admin];

    /// The spelling in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buyer => "buyer",
            Self::Payments => "payments",
            Self::Read => "read",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role with this spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.as_str() == text)
    }
}

/// A key's id: the part of it that is no secret. 16 characters of `a`–`z` and `0`–`9`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// Takes a text that has the form of an id.
    pub fn new(text: &str) -> Option<Self> {
        let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        (text.len() == KEY_ID_CHARS && text.bytes().all(is_good)).then(|| Self(Arc::from(text)))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The campaigns that somebody may see and touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    /// Every campaign, also those to come.
    #[default]
    All,
    /// These and no others.
    Only(Arc<BTreeSet<CampaignId>>),
}

impl Scope {
    /// Whether a campaign is in it.
    pub fn allows(&self, campaign: &CampaignId) -> bool {
        self.campaigns().is_none_or(|campaigns| campaigns.contains(campaign))
    }

    /// The campaigns; none for all.
    pub fn campaigns(&self) -> Option<&BTreeSet<CampaignId>> {
        match self {
            Self::All => None,
            Self::Only(campaigns) => Some(campaigns),
        }
    }
}

/// A key as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// Its id.
    pub id: KeyId,
    /// Its name, for people.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Where.
    pub scope: Scope,
    /// The hash of its secret. The secret is random with 256 bits, so it needs no slow hash.
    pub secret_sha256: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it opens nothing; none = never.
    pub expires_at: Option<Timestamp>,
    /// Since when it opens nothing, because somebody said so.
    pub revoked_at: Option<Timestamp>,
    /// Who made it.
    pub created_by: Arc<str>,
}

impl KeyRow {
    /// Whether it opens anything at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// A key to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateKey {
    /// Its id.
    pub id: KeyId,
    /// Its name, for people.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Where.
    pub scope: Scope,
    /// The hash of its secret.
    pub secret_sha256: [u8; 32],
    /// Until when; none = for ever.
    pub expires_at: Option<Timestamp>,
    /// Who makes it; none if the node itself does.
    pub via: Option<Arc<Via>>,
}

impl CreateKey {
    /// The row that it becomes.
    pub fn into_row(self, now: Timestamp) -> KeyRow {
        KeyRow {
            id: self.id,
            name: self.name,
            role: self.role,
            scope: self.scope,
            secret_sha256: self.secret_sha256,
            created_at: now,
            expires_at: self.expires_at,
            revoked_at: None,
            created_by: self.via.map_or_else(|| Arc::from("holdfast"), |via| Arc::clone(&via.key)),
        }
    }
}

/// A key to revoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeKey {
    /// Which.
    pub id: KeyId,
    /// Who revokes it.
    pub via: Option<Arc<Via>>,
}

/// Why a key is not made or not revoked. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRefusal {
    /// There is no such key.
    Unknown,
    /// There is a key with this id.
    Taken,
    /// [`LIVE_KEYS_MAX`] keys are live.
    TooMany,
    /// Without this key nobody could make another.
    LastAdmin,
}
