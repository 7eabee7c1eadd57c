//! What a campaign offers besides its pools: the order of its locations, and bundles.

use serde::{Deserialize, Serialize};

/// `PUT /v1/campaigns/{id}/locations`: where lines that name no location are taken from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutLocationsRequest {
    /// The locations, in this order, each once.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 16, value_type = Vec<String>))]
    pub order: Vec<String>,
    /// Whether a line may be split over them; `false` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<bool>,
}

/// A campaign's location order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LocationsView {
    /// The campaign.
    pub campaign_id: String,
    /// The locations, in order; `main` alone if none was ever set.
    pub order: Vec<String>,
    /// Whether a line may be split over them.
    pub split: bool,
}

/// What a campaign offers besides its pools: its location order, and its bundles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AssortmentView {
    /// Where lines that name no location are taken from, in order.
    pub order: Vec<String>,
    /// Whether a line may be split over them.
    pub split: bool,
    /// Every bundle.
    pub bundles: Vec<MadeOfView>,
}

/// What a bundle is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MadeOfView {
    /// What it is sold as.
    pub sku: String,
    /// What is in one of it.
    pub components: Vec<ComponentView>,
}

/// `PUT /v1/bundles/{campaign_id}/{sku}`: what a bundle is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutBundleRequest {
    /// What is in one of it, each SKU once.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 16))]
    pub components: Vec<BundleComponent>,
}

/// A component of a bundle to put.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BundleComponent {
    /// What it is: no bundle.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub sku: String,
    /// Units of it in one bundle.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    pub quantity: u32,
}

/// A bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BundleView {
    /// The campaign.
    pub campaign_id: String,
    /// What it is sold as.
    pub sku: String,
    /// What is in one of it.
    pub components: Vec<ComponentView>,
    /// How many could be sold now, for display: the least of its components, at each location of the campaign's
    /// order by itself unless lines may be split.
    pub available: u64,
}

/// A component of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ComponentView {
    /// What it is.
    pub sku: String,
    /// Units of it in one bundle.
    pub quantity: u32,
}
