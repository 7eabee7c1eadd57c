//! The routes, one method each.

use holdfast_wire::{
    AdjustPoolRequest, AdjustmentView, BatchView, BundleView, CacheView, CampaignView, CancelOrdersRequest,
    CancelRequest, CancellationsView, ChangePoolRequest, CloseRequest, ImportView, LedgerEntryView,
    LocationsView, NotificationView, OpenPoolRequest, OrderView, Page, PaymentAttemptRequest,
    PaymentNotification, PlaceBatchRequest, PlaceOrderRequest, PoolView, PutBundleRequest,
    PutCampaignRequest, PutLocationsRequest, RefundRequest, ResolveOrderRequest, SettlementView,
    SweepRequest, SwitchRequest, TransferRequest, TransferView,
};
use reqwest::Method;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::query::{
    ImportQuery, LedgerQuery, OrdersQuery, PageQuery, Parameter, PoolSwitch, PoolsQuery, Switch,
};
use crate::transport::{Answer, Client};

/// Items on a page when a whole list is read: the most that the server gives.
const PAGE_ITEMS: u32 = 500;

impl Client {
    /// Creates (201) or changes (200) a campaign.
    pub async fn put_campaign(
        &self,
        id: &str,
        request: &PutCampaignRequest,
    ) -> Result<Answer<CampaignView>, Error> {
        self.write(Method::PUT, &["campaigns", id], request).await
    }

    /// A campaign.
    pub async fn campaign(&self, id: &str) -> Result<CampaignView, Error> {
        self.get(&["campaigns", id], &[]).await
    }

    /// What became of a campaign's stock, exact as of a ledger position.
    pub async fn settlement(&self, id: &str) -> Result<SettlementView, Error> {
        self.get(&["campaigns", id, "settlement"], &[]).await
    }

    /// Where lines that name no location are taken from.
    pub async fn locations(&self, campaign: &str) -> Result<LocationsView, Error> {
        self.get(&["campaigns", campaign, "locations"], &[]).await
    }

    /// Sets where lines that name no location are taken from.
    pub async fn put_locations(
        &self,
        campaign: &str,
        request: &PutLocationsRequest,
    ) -> Result<LocationsView, Error> {
        Ok(self.write(Method::PUT, &["campaigns", campaign, "locations"], request).await?.value)
    }

    /// A bundle, with how many could be sold, for display.
    pub async fn bundle(&self, campaign: &str, sku: &str) -> Result<BundleView, Error> {
        self.get(&["bundles", campaign, sku], &[]).await
    }

    /// Makes (201) or changes (200) a bundle.
    pub async fn put_bundle(
        &self,
        campaign: &str,
        sku: &str,
        request: &PutBundleRequest,
    ) -> Result<Answer<BundleView>, Error> {
        self.write(Method::PUT, &["bundles", campaign, sku], request).await
    }

    /// Ends a campaign's sale for good.
    pub async fn close_campaign(&self, id: &str, request: &CloseRequest) -> Result<CampaignView, Error> {
        Ok(self.write(Method::POST, &["campaigns", id, "close"], request).await?.value)
    }

    /// Sets a switch of a campaign.
    pub async fn switch_campaign(
        &self,
        id: &str,
        switch: Switch,
        request: &SwitchRequest,
    ) -> Result<CampaignView, Error> {
        let answer = self.write(Method::POST, &["campaigns", id, switch.as_str()], request).await?;
        Ok(answer.value)
    }

    /// Makes the node ready for a campaign before its sale: what it makes ready is in the answer.
    pub async fn warm_campaign(&self, id: &str, request: &SwitchRequest) -> Result<CampaignView, Error> {
        Ok(self.write(Method::POST, &["campaigns", id, "warm"], request).await?.value)
    }

    /// Opens a pool: 201, or 200 if it was opened just so before.
    pub async fn open_pool(&self, request: &OpenPoolRequest) -> Result<Answer<PoolView>, Error> {
        self.write(Method::POST, &["pools"], request).await
    }

    /// A pool, exact.
    pub async fn pool(&self, id: &str) -> Result<PoolView, Error> {
        self.get(&["pools", id], &[]).await
    }

    /// A pool's caches beside the authority's account of them, one a bucket.
    pub async fn cache(&self, id: &str) -> Result<CacheView, Error> {
        self.get(&["pools", id, "cache"], &[]).await
    }

    /// A page of pools, exact.
    pub async fn pools(&self, query: &PoolsQuery, page: &PageQuery) -> Result<Page<PoolView>, Error> {
        self.page(&["pools"], query.parameters(), page).await
    }

    /// Every pool asked for, page by page.
    pub async fn every_pool(&self, query: &PoolsQuery) -> Result<Vec<PoolView>, Error> {
        self.every_page(&["pools"], query.parameters()).await
    }

    /// Changes how orders come to a pool, while it sells.
    pub async fn change_pool(&self, id: &str, request: &ChangePoolRequest) -> Result<PoolView, Error> {
        Ok(self.write(Method::PATCH, &["pools", id], request).await?.value)
    }

    /// Sets a switch of a pool.
    pub async fn switch_pool(
        &self,
        id: &str,
        switch: PoolSwitch,
        request: &SwitchRequest,
    ) -> Result<PoolView, Error> {
        Ok(self.write(Method::POST, &["pools", id, switch.as_str()], request).await?.value)
    }

    /// Gathers a pool's available units in one bucket.
    pub async fn sweep_pool(&self, id: &str, request: &SweepRequest) -> Result<PoolView, Error> {
        Ok(self.write(Method::POST, &["pools", id, "sweep"], request).await?.value)
    }

    /// Moves available units to another pool or bucket: 201, or 200 if that was done before.
    pub async fn transfer_stock(&self, request: &TransferRequest) -> Result<Answer<TransferView>, Error> {
        self.write(Method::POST, &["transfers"], request).await
    }

    /// Changes a pool's supply: 201, or 200 if that was done before.
    pub async fn adjust_pool(
        &self,
        id: &str,
        request: &AdjustPoolRequest,
    ) -> Result<Answer<AdjustmentView>, Error> {
        self.write(Method::POST, &["pools", id, "adjustments"], request).await
    }

    /// Imports a stock file, whole or not at all: 201, or 200 if that was done before or is a dry run. Every fault
    /// of the file is among the problem's errors.
    pub async fn import_stock(
        &self,
        query: &ImportQuery,
        file: Vec<u8>,
    ) -> Result<Answer<ImportView>, Error> {
        self.post_file(&["imports", "stock"], &query.parameters(), file).await
    }

    /// Places an order. When every attempt leaves the outcome unknown, the order is looked up, which waits
    /// once more for a server that answers, and then the same key is asked again: the server alone says
    /// what became of it.
    pub async fn place_order(&self, request: &PlaceOrderRequest) -> Result<Answer<OrderView>, Error> {
        self.place(request, false).await
    }

    /// Places an order without waiting for stock: it is queued (202) whatever the path of its pools, unless
    /// the key is known. Nothing is held yet: see [`Client::wait_for_order`].
    pub async fn place_order_queued(&self, request: &PlaceOrderRequest) -> Result<Answer<OrderView>, Error> {
        self.place(request, true).await
    }

    async fn place(
        &self,
        request: &PlaceOrderRequest,
        prefers_queue: bool,
    ) -> Result<Answer<OrderView>, Error> {
        let unknown = match self.post_order(request, prefers_queue).await {
            Err(error) if error.outcome_is_unknown() => error,
            answer => return answer,
        };
        match self.order_by_key(&request.campaign_id, &request.order_no).await {
            Ok(_) => self.post_order(request, prefers_queue).await,
            Err(_) => Err(unknown),
        }
    }

    /// Places up to 500 orders, each on its own.
    pub async fn place_orders(&self, request: &PlaceBatchRequest) -> Result<BatchView, Error> {
        Ok(self.write(Method::POST, &["orders", "batch"], request).await?.value)
    }

    /// An order by its id.
    pub async fn order(&self, id: &str) -> Result<OrderView, Error> {
        self.get(&["orders", id], &[]).await
    }

    /// An order by its business key; none if there is no such order.
    pub async fn order_by_key(&self, campaign_id: &str, order_no: &str) -> Result<Option<OrderView>, Error> {
        let parameters = [("campaign_id", Some(campaign_id)), ("order_no", Some(order_no))];
        let page: Page<OrderView> = self.get(&["orders"], &parameters).await?;
        Ok(page.items.into_iter().next())
    }

    /// A page of orders.
    pub async fn orders(&self, query: &OrdersQuery, page: &PageQuery) -> Result<Page<OrderView>, Error> {
        self.page(&["orders"], query.parameters(), page).await
    }

    /// Cancels an order, or reduces its lines.
    pub async fn cancel_order(&self, id: &str, request: &CancelRequest) -> Result<Answer<OrderView>, Error> {
        self.write(Method::POST, &["orders", id, "cancel"], request).await
    }

    /// Cancels a page of a campaign's orders; go on with its `next_after` until there is none.
    pub async fn cancel_orders(&self, request: &CancelOrdersRequest) -> Result<CancellationsView, Error> {
        Ok(self.write(Method::POST, &["orders", "cancellations"], request).await?.value)
    }

    /// Says that a payment has begun: 201, or 200 if that was said before.
    pub async fn begin_attempt(
        &self,
        id: &str,
        request: &PaymentAttemptRequest,
    ) -> Result<Answer<OrderView>, Error> {
        self.write(Method::POST, &["orders", id, "payment-attempts"], request).await
    }

    /// Passes on a provider's notice of a payment. It is not signed: the server must know the client by its
    /// key.
    pub async fn notify_payment(
        &self,
        provider: &str,
        notice: &PaymentNotification,
    ) -> Result<Answer<NotificationView>, Error> {
        self.write(Method::POST, &["payments", provider, "notifications"], notice).await
    }

    /// Refunds units of an order: 201, or 200 if that was done before.
    pub async fn refund_order(&self, id: &str, request: &RefundRequest) -> Result<Answer<OrderView>, Error> {
        self.write(Method::POST, &["orders", id, "refunds"], request).await
    }

    /// Decides on an order: confirm, release, extend, or money that went back.
    pub async fn resolve_order(
        &self,
        id: &str,
        request: &ResolveOrderRequest,
    ) -> Result<Answer<OrderView>, Error> {
        self.write(Method::POST, &["orders", id, "resolve"], request).await
    }

    /// A page of the ledger.
    pub async fn ledger(
        &self,
        query: &LedgerQuery,
        page: &PageQuery,
    ) -> Result<Page<LedgerEntryView>, Error> {
        self.page(&["ledger"], query.parameters(), page).await
    }

    /// Every ledger entry asked for, page by page.
    pub async fn every_ledger_entry(&self, query: &LedgerQuery) -> Result<Vec<LedgerEntryView>, Error> {
        self.every_page(&["ledger"], query.parameters()).await
    }

    pub(crate) async fn page<'a, T: DeserializeOwned>(
        &self,
        path: &[&str],
        mut parameters: Vec<Parameter<'a>>,
        page: &'a PageQuery,
    ) -> Result<Page<T>, Error> {
        let limit = page.limit.map(|limit| limit.to_string());
        parameters.push(("cursor", page.cursor.as_deref()));
        let mut all: Vec<Parameter<'_>> = parameters;
        all.push(("limit", limit.as_deref()));
        self.get(path, &all).await
    }

    pub(crate) async fn every_page<T: DeserializeOwned>(
        &self,
        path: &[&str],
        parameters: Vec<Parameter<'_>>,
    ) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        let mut page = PageQuery { limit: Some(PAGE_ITEMS), cursor: None };
        loop {
            let answer: Page<T> = self.page(path, parameters.clone(), &page).await?;
            items.extend(answer.items);
            if answer.next_cursor.is_none() {
                return Ok(items);
            }
            if answer.next_cursor == page.cursor {
                return Err(Error::Unexpected("a list that does not move on".into()));
            }
            page.cursor = answer.next_cursor;
        }
    }
}
