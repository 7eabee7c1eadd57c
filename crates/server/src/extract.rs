//! What handlers take from a request: ids of the path, and the body, bounded in length and time.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, RawQuery, Request};
use axum::http::{HeaderMap, header, request::Parts};
use bytes::BytesMut;
use holdfast_core::approval::ApprovalKey;
use holdfast_core::id::{AdjustmentId, CampaignId, CaseId, OrderId, PoolId, Provider, RunId, Sku};
use holdfast_store::{KeyId, SinkName};
use holdfast_wire::Code;

use crate::answer::JSON;
use crate::app::{App, WritePermit};
use crate::config::Limits;
use crate::input::field::{TextId, number_id, order_id_of, pool_id_of};
use crate::input::query::Query;
use crate::input::reader::Object;
use crate::input::report::Located;
use crate::input::sinks::SINK_NAME_RULE;
use crate::input::{self};
use crate::problem::Problem;

/// How many times the limit a body that is too long is still read (and thrown away), so that a client
/// that is busy sending sees the answer rather than a reset connection.
const DRAIN_FACTOR: usize = 8;

/// An id in a path: what has no form of one names nothing.
pub(crate) trait PathId: Sized {
    fn from_path(text: &str) -> Option<Self>;
}

impl PathId for OrderId {
    fn from_path(text: &str) -> Option<Self> {
        order_id_of(text)
    }
}

impl PathId for PoolId {
    fn from_path(text: &str) -> Option<Self> {
        pool_id_of(text)
    }
}

impl PathId for CaseId {
    fn from_path(text: &str) -> Option<Self> {
        number_id(text).map(Self)
    }
}

impl PathId for RunId {
    fn from_path(text: &str) -> Option<Self> {
        number_id(text).map(Self)
    }
}

impl PathId for CampaignId {
    fn from_path(text: &str) -> Option<Self> {
        Self::new(text).ok()
    }
}

impl PathId for ApprovalKey {
    fn from_path(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

impl PathId for AdjustmentId {
    fn from_path(text: &str) -> Option<Self> {
        Self::new(text).ok()
    }
}

impl PathId for KeyId {
    fn from_path(text: &str) -> Option<Self> {
        Self::new(text)
    }
}

impl PathId for Provider {
    fn from_path(text: &str) -> Option<Self> {
        Self::new(text).ok()
    }
}

impl PathId for SinkName {
    fn from_path(text: &str) -> Option<Self> {
        Self::new(text)
    }
}

/// The id in the path of something that exists.
pub(crate) struct Named<T>(pub(crate) T);

impl<T: PathId> FromRequestParts<App> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let id = path_text(parts, app).await.as_deref().and_then(T::from_path);
        id.map(Self).ok_or_else(|| Problem::not_found("there is no such thing"))
    }
}

/// The id in the path of something that may be made by this request.
pub(crate) struct Naming<T>(pub(crate) T);

impl<T: TextId> FromRequestParts<App> for Naming<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let invalid = |why: String| Problem::of_fault(Located::new("/path/id", Code::InvalidIdentifier, why));
        let text = path_text(parts, app).await.ok_or_else(|| invalid("must be UTF-8".to_owned()))?;
        T::from_text(&text).map(Self).map_err(|why| invalid(why.to_string()))
    }
}

/// The name in the path of a sink that may be made by this request.
pub(crate) struct NamingSink(pub(crate) SinkName);

impl FromRequestParts<App> for NamingSink {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let name = path_text(parts, app).await.as_deref().and_then(SinkName::new);
        let invalid = || Located::new("/path/name", Code::InvalidIdentifier, SINK_NAME_RULE);
        name.map(Self).ok_or_else(|| Problem::of_fault(invalid()))
    }
}

/// A secret of a sink in the path; none: there can be none of that name.
pub(crate) struct InSink(pub(crate) Option<(SinkName, String)>);

impl FromRequestParts<App> for InSink {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let found = Path::<(String, String)>::from_request_parts(parts, app).await.ok();
        Ok(Self(found.and_then(|Path((name, id))| Some((SinkName::new(&name)?, id)))))
    }
}

/// The bundle in the path: its campaign and its SKU, or why there can be none of that name.
pub(crate) struct InBundle(pub(crate) Result<(CampaignId, Sku), Problem>);

impl FromRequestParts<App> for InBundle {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let invalid =
            |at: &str, why: String| Problem::of_fault(Located::new(at, Code::InvalidIdentifier, why));
        let Ok(Path((campaign, sku))) = Path::<(String, String)>::from_request_parts(parts, app).await else {
            return Ok(Self(Err(invalid("/path", "must be UTF-8".to_owned()))));
        };
        let campaign =
            CampaignId::new(&campaign).map_err(|why| invalid("/path/campaign_id", why.to_string()));
        let sku = Sku::new(&sku).map_err(|why| invalid("/path/sku", why.to_string()));
        Ok(Self(campaign.and_then(|campaign| Ok((campaign, sku?)))))
    }
}

async fn path_text(parts: &mut Parts, app: &App) -> Option<String> {
    Path::<String>::from_request_parts(parts, app).await.ok().map(|Path(text)| text)
}

/// A route that takes no parameters.
pub(crate) struct NoQuery;

impl FromRequestParts<App> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let Ok(RawQuery(query)) = RawQuery::from_request_parts(parts, app).await;
        Query::new(query.as_deref())?.finish(Some(Self))
    }
}

/// The body of a write, and leave to do it. Leave comes first: what is refused need not be read. A write
/// takes no parameters: one that is ignored (`?dry_run=true`) would do what its client did not want.
pub(crate) struct WriteBody {
    /// Leave to do one write.
    pub(crate) permit: WritePermit,
    /// The body as it came.
    pub(crate) bytes: Bytes,
}

impl FromRequest<App> for WriteBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let permit = app.admit()?;
        let bytes = whole_body(request, app).await?;
        Ok(Self { permit, bytes })
    }
}

/// The body of a write, of whoever sent it.
pub(crate) async fn whole_body(request: Request, app: &App) -> Result<Bytes, Problem> {
    let (mut parts, body) = request.into_parts();
    NoQuery::from_request_parts(&mut parts, app).await?;
    let has_type = check_content_type(&parts.headers)?;
    let bytes = read_body(&parts.headers, body, app.limits()).await?;
    if !has_type && !bytes.is_empty() {
        return Err(unsupported("the body must be application/json"));
    }
    Ok(bytes)
}

impl WriteBody {
    /// Reads the body as one object.
    pub(crate) fn read<T>(&self, shape: impl FnOnce(&mut Object<'_, '_>) -> Option<T>) -> Result<T, Problem> {
        input::read(&self.bytes, shape)
    }

    /// Reads a body that may be left out: nothing is the same as `{}`.
    pub(crate) fn read_or_empty<T>(
        &self,
        shape: impl FnOnce(&mut Object<'_, '_>) -> Option<T>,
    ) -> Result<T, Problem> {
        input::read(if self.bytes.is_empty() { b"{}" } else { &self.bytes }, shape)
    }
}

/// A stock file: CSV, of whoever was let in. It may be longer than other bodies and take longer to come.
pub(crate) async fn whole_file(request: Request, app: &App) -> Result<Bytes, Problem> {
    let (parts, body) = request.into_parts();
    check_media(&parts.headers, "text/csv", "the body must be text/csv")?;
    let limits = app.limits();
    let read = collect(&parts.headers, body, limits.import_bytes_max);
    tokio::time::timeout(limits.import_timeout, read).await.unwrap_or_else(|_| Err(too_slow()))
}

fn unsupported(detail: &'static str) -> Problem {
    Problem::new(Code::UnsupportedMediaType, detail)
}

/// Whether there is a content type; it must be JSON, with or without parameters.
fn check_content_type(headers: &HeaderMap) -> Result<bool, Problem> {
    check_media(headers, JSON, "the body must be application/json")
}

/// Whether there is a content type; it must be this one, with or without parameters.
fn check_media(headers: &HeaderMap, wanted: &str, why: &'static str) -> Result<bool, Problem> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let Some(value) = values.next() else { return Ok(false) };
    let media = value.to_str().ok().and_then(|text| text.split(';').next()).map(str::trim);
    if values.next().is_none() && media.is_some_and(|media| media.eq_ignore_ascii_case(wanted)) {
        return Ok(true);
    }
    Err(unsupported(why))
}

async fn read_body(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, Problem> {
    let read = tokio::time::timeout(limits.body_read_timeout, collect(headers, body, limits.body_bytes_max));
    read.await.unwrap_or_else(|_| Err(too_slow()))
}

fn too_slow() -> Problem {
    Problem::new(Code::RequestTimeout, "the body did not come in time")
}

/// The whole body, however it is framed, if it is not too long.
async fn collect(headers: &HeaderMap, mut body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let drained_max = bytes_max.saturating_mul(DRAIN_FACTOR);
    if declared.is_some_and(|length: usize| length > drained_max) {
        return Err(too_large());
    }
    let mut bytes = BytesMut::with_capacity(declared.unwrap_or(0).min(bytes_max));
    let mut length = 0_usize;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let broken = |_| Problem::new(Code::MalformedJson, "the body broke off");
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length > drained_max {
            return Err(too_large());
        }
        if length <= bytes_max {
            bytes.extend_from_slice(&data);
        }
    }
    if length > bytes_max { Err(too_large()) } else { Ok(bytes.freeze()) }
}

fn too_large() -> Problem {
    Problem::new(Code::TooLarge, "the body is too long")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn content_type(values: &[&'static str]) -> Result<bool, u16> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::CONTENT_TYPE, HeaderValue::from_static(value));
        }
        check_content_type(&headers).map_err(|problem| problem.status())
    }

    #[test]
    fn only_json_is_taken() {
        assert_eq!(content_type(&[]), Ok(false));
        assert_eq!(content_type(&["application/json"]), Ok(true));
        assert_eq!(content_type(&["Application/JSON ; charset=utf-8"]), Ok(true));
        for bad in ["text/plain", "application/json5", "application/problem+json", "", "json"] {
            assert_eq!(content_type(&[bad]), Err(415), "{bad}");
        }
        assert_eq!(content_type(&["application/json", "application/json"]), Err(415));
    }

    #[tokio::test]
    async fn long_bodies_are_refused_with_and_without_a_length() {
        let read = async |length: usize, declared: Option<usize>| {
            let mut headers = HeaderMap::new();
            if let Some(declared) = declared {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from(declared));
            }
            let body = collect(&headers, Body::from(vec![b' '; length]), 100).await;
            body.map(|bytes| bytes.len()).map_err(|problem| problem.status())
        };
        assert_eq!(read(100, None).await, Ok(100));
        assert_eq!(read(101, None).await, Err(413));
        assert_eq!(read(10_000, None).await, Err(413));
        assert_eq!(read(101, Some(101)).await, Err(413));
        assert_eq!(read(10_000, Some(10_000)).await, Err(413));
        assert_eq!(read(0, None).await, Ok(0));
    }
}
