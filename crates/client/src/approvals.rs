//! Work that waits for a second person.

use holdfast_wire::{ApprovalView, Page, SwitchRequest};
use reqwest::Method;

use crate::error::Error;
use crate::query::{ApprovalsQuery, PageQuery};
use crate::transport::Client;

impl Client {
    /// A page of requests for a second person.
    pub async fn approvals(
        &self,
        query: &ApprovalsQuery,
        page: &PageQuery,
    ) -> Result<Page<ApprovalView>, Error> {
        self.page(&["approvals"], query.parameters(), page).await
    }

    /// Every request asked for, page by page.
    pub async fn every_approval(&self, query: &ApprovalsQuery) -> Result<Vec<ApprovalView>, Error> {
        self.every_page(&["approvals"], query.parameters()).await
    }

    /// One request.
    pub async fn approval(&self, id: &str) -> Result<ApprovalView, Error> {
        self.get(&["approvals", id], &[]).await
    }

    /// Agrees: the work is done, now or before.
    pub async fn approve(&self, id: &str, request: &SwitchRequest) -> Result<ApprovalView, Error> {
        Ok(self.write(Method::POST, &["approvals", id, "approve"], request).await?.value)
    }

    /// Refuses: the work is never done.
    pub async fn reject(&self, id: &str, request: &SwitchRequest) -> Result<ApprovalView, Error> {
        Ok(self.write(Method::POST, &["approvals", id, "reject"], request).await?.value)
    }
}
