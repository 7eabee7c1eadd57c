//! Answers of any length, piece by piece.

use std::time::Duration;

use reqwest::Response;
use reqwest::header::{ACCEPT, HeaderValue};

use crate::error::Error;
use crate::transport::{Client, Failure};

/// How long the next piece may take.
const PIECE_MAX: Duration = Duration::from_secs(60);

/// A file that the server sends. It is whole when [`Download::next`] has given none; an error before means
/// that it is not.
#[derive(Debug)]
pub struct Download {
    client: Client,
    response: Response,
}

impl Client {
    /// The stock of a campaign as CSV (`sku,location,quantity`), in the form in which it is imported.
    pub async fn export_stock(&self, campaign_id: &str) -> Result<Download, Error> {
        let parameters = [("campaign_id", Some(campaign_id))];
        let accept = (ACCEPT, HeaderValue::from_static("text/csv"));
        let response = self.opened(&["exports", "stock"], &parameters, vec![accept]).await?;
        Ok(Download { client: self.clone(), response })
    }
}

impl Download {
    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match tokio::time::timeout(PIECE_MAX, self.response.chunk()).await {
            Ok(Ok(piece)) => Ok(piece.map(|bytes| bytes.to_vec())),
            Ok(Err(error)) => match self.client.lost(error) {
                Failure::Again(error, _) | Failure::Final(error) => Err(error),
            },
            Err(_) => Err(Error::Unexpected(format!("nothing came for {PIECE_MAX:?}"))),
        }
    }
}
