//! Keys, and the trail of what operators did.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Word;
#[cfg(feature = "openapi")]
use crate::words;

/// `POST /v1/keys`: makes a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateKeyRequest {
    /// Its name, for people and for the ledger.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 100))]
    pub name: String,
    /// What it may do: `buyer`, `payments`, `read`, `operator` or `admin`.
    #[cfg_attr(feature = "openapi", schema(schema_with = words::role))]
    pub role: String,
    /// The campaigns that it is for; absent: all of them. Keys of the role `admin` are always for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::campaigns))]
    pub campaigns: Option<Vec<String>>,
    /// From when on it opens nothing; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "2026-03-29T12:00:00Z"))]
    pub expires_at: Option<String>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyView {
    /// Its id: the part of it that is no secret.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it may do.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "buyer"))]
    pub role: Word,
    /// The campaigns that it is for; none: all of them.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub campaigns: Option<Vec<String>>,
    /// `live`, `expired` or `revoked`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "live"))]
    pub state: Word,
    /// When it was made.
    pub created_at: String,
    /// Who made it.
    pub created_by: String,
    /// From when on it opens nothing; none: never.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub expires_at: Option<String>,
    /// When it was revoked.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub revoked_at: Option<String>,
}

/// A key that was just made. Only this answer holds the key itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedKeyView {
    /// The key: it is shown this once.
    pub key: String,
    /// What is kept of it.
    #[serde(flatten)]
    pub view: KeyView,
}

impl fmt::Debug for CreatedKeyView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedKeyView").field("view", &self.view).finish_non_exhaustive()
    }
}

/// What somebody did to a campaign, a pool, an order, a case or a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActView {
    /// Its number: later acts have higher ones.
    pub id: u64,
    /// When.
    pub at: String,
    /// Whose key it was: name and id; `anonymous` where keys are not wanted, `holdfast` for the server itself.
    pub actor: String,
    /// The operator as the request named one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub operator: Option<String>,
    /// What was done, in a word.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "pause"))]
    pub action: Word,
    /// What it was about: kind and id.
    #[cfg_attr(feature = "openapi", schema(example = "campaign spring"))]
    pub subject: String,
    /// The campaign concerned.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub campaign_id: Option<String>,
    /// Why, as the request said.
    pub reason: String,
    /// What changed, for people.
    pub detail: String,
    /// The request.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub request_id: Option<String>,
}
