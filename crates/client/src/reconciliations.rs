//! Reconciliation: runs, differences, and the cases in which people decide about them.

use holdfast_wire::{
    CaseView, DiscrepancyView, Page, ReconcileRequest, ReconciliationView, ResolveCaseRequest,
};
use reqwest::Method;

use crate::error::Error;
use crate::query::{CasesQuery, DiscrepanciesQuery, PageQuery};
use crate::transport::{Answer, Client};

impl Client {
    /// Asks for a run. It goes on in the background; asked twice there are two.
    pub async fn reconcile(&self, request: &ReconcileRequest) -> Result<ReconciliationView, Error> {
        Ok(self.write(Method::POST, &["reconciliations"], request).await?.value)
    }

    /// How a run stands.
    pub async fn reconciliation(&self, id: &str) -> Result<ReconciliationView, Error> {
        self.get(&["reconciliations", id], &[]).await
    }

    /// A page of runs, the latest first.
    pub async fn reconciliations(&self, page: &PageQuery) -> Result<Page<ReconciliationView>, Error> {
        self.page(&["reconciliations"], Vec::new(), page).await
    }

    /// A page of differences.
    pub async fn discrepancies(
        &self,
        query: &DiscrepanciesQuery,
        page: &PageQuery,
    ) -> Result<Page<DiscrepancyView>, Error> {
        self.page(&["discrepancies"], query.parameters(), page).await
    }

    /// Every difference asked for, page by page.
    pub async fn every_discrepancy(&self, query: &DiscrepanciesQuery) -> Result<Vec<DiscrepancyView>, Error> {
        self.every_page(&["discrepancies"], query.parameters()).await
    }

    /// A page of the cases that wait for a person.
    pub async fn open_cases(&self, page: &PageQuery) -> Result<Page<CaseView>, Error> {
        self.page(&["cases"], vec![("state", Some("open"))], page).await
    }

    /// Every case asked for, page by page.
    pub async fn every_case(&self, query: &CasesQuery) -> Result<Vec<CaseView>, Error> {
        self.every_page(&["cases"], query.parameters()).await
    }

    /// Decides on a case. The same decision again changes nothing. Where a second person is asked, the answer is no
    /// case: [`Client::decide_case`] shows either.
    pub async fn resolve_case(
        &self,
        id: &str,
        request: &ResolveCaseRequest,
    ) -> Result<Answer<CaseView>, Error> {
        self.write(Method::POST, &["cases", id, "resolve"], request).await
    }

    /// The same, with the answer as it is: the case, or the request for a second person.
    pub async fn decide_case(
        &self,
        id: &str,
        request: &ResolveCaseRequest,
    ) -> Result<Answer<serde_json::Value>, Error> {
        self.write(Method::POST, &["cases", id, "resolve"], request).await
    }
}
