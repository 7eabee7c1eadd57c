//! Keys and the trail of what was done through them.

use holdfast_wire::{ActView, CreateKeyRequest, CreatedKeyView, KeyView, Page};
use reqwest::Method;

use crate::error::Error;
use crate::query::PageQuery;
use crate::transport::Client;

impl Client {
    /// Makes a key. The one request that is never repeated: each would make another key. If its outcome is
    /// unknown, look into the list and revoke what nobody has.
    pub async fn create_key(&self, request: &CreateKeyRequest) -> Result<CreatedKeyView, Error> {
        Ok(self.once().write(Method::POST, &["keys"], request).await?.value)
    }

    /// A page of keys, without their secrets.
    pub async fn keys(&self, page: &PageQuery) -> Result<Page<KeyView>, Error> {
        self.page(&["keys"], Vec::new(), page).await
    }

    /// Every key, page by page.
    pub async fn every_key(&self) -> Result<Vec<KeyView>, Error> {
        self.every_page(&["keys"], Vec::new()).await
    }

    /// Revokes a key; one that is revoked stays so.
    pub async fn revoke_key(&self, id: &str) -> Result<KeyView, Error> {
        Ok(self.write(Method::DELETE, &["keys", id], &serde_json::json!({})).await?.value)
    }

    /// A page of what operators did, the newest first; perhaps about one subject only.
    pub async fn acts(&self, subject: Option<&str>, page: &PageQuery) -> Result<Page<ActView>, Error> {
        self.page(&["audit"], vec![("subject", subject)], page).await
    }
}
