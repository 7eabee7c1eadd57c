//! What form of an answer a client accepts.

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use holdfast_wire::Code;

use crate::answer::JSON;
use crate::problem::Problem;

/// Lets only those in who can take JSON.
pub(crate) async fn require_json(request: Request, next: Next) -> Result<Response, Problem> {
    best_of(request.headers(), &[JSON])?;
    Ok(next.run(request).await)
}

/// The offered media type that the client likes best; of equals the first.
pub(crate) fn best_of<'o>(headers: &HeaderMap, offered: &[&'o str]) -> Result<&'o str, Problem> {
    let ranges: Vec<Range<'_>> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(Range::parse)
        .collect();
    let mut best: Option<(&str, u16)> = None;
    for media in offered {
        // Without the header everything is welcome.
        let quality = if headers.contains_key(header::ACCEPT) { quality_of(media, &ranges) } else { 1_000 };
        if quality > best.map_or(0, |(_, quality)| quality) {
            best = Some((media, quality));
        }
    }
    best.map(|(media, _)| media).ok_or_else(|| {
        Problem::new(Code::NotAcceptable, format!("this can be had as {}", offered.join(", ")))
    })
}

/// One media range of an `Accept` header.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    /// In thousandths.
    quality: u16,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let quality = parts
            .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
            .map_or(Some(1_000), thousandths)?;
        Some(Self { kind, subtype, quality })
    }

    /// How exactly it names the media type; none if it does not.
    fn precision(&self, kind: &str, subtype: &str) -> Option<u8> {
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (k, "*") if k.eq_ignore_ascii_case(kind) => Some(1),
            (k, s) if k.eq_ignore_ascii_case(kind) && s.eq_ignore_ascii_case(subtype) => Some(2),
            _ => None,
        }
    }
}

/// The most exact range decides.
fn quality_of(media: &str, ranges: &[Range<'_>]) -> u16 {
    let (kind, subtype) = media.split_once('/').unwrap_or((media, ""));
    ranges
        .iter()
        .filter_map(|range| range.precision(kind, subtype).map(|precision| (precision, range.quality)))
        .max()
        .map_or(0, |(_, quality)| quality)
}

/// `0`, `0.5`, `1.000`.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = fraction.len() <= 3 && fraction.bytes().all(|b| b.is_ascii_digit());
    let fraction: u16 = if is_number { format!("{fraction:0<3}").parse().ok()? } else { return None };
    match whole {
        "0" => Some(fraction),
        "1" if fraction == 0 => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const CSV: &str = "text/csv";

    fn best(accept: Option<&'static str>, offered: &[&'static str]) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        }
        best_of(&headers, offered).ok()
    }

    #[test]
    fn the_best_form_wins() {
        assert_eq!(best(None, &[JSON]), Some(JSON));
        for good in
            ["*/*", "application/*", "application/json", "text/html, Application/JSON;q=0.1", "*/*;q=0.1"]
        {
            assert_eq!(best(Some(good), &[JSON]), Some(JSON), "{good}");
        }
        for bad in
            ["text/html", "application/xml", "application/json;q=0", "*/*, application/json;q=0", "", "json"]
        {
            assert_eq!(best(Some(bad), &[JSON]), None, "{bad}");
        }
        assert_eq!(best(Some("text/csv"), &[JSON, CSV]), Some(CSV));
        assert_eq!(best(Some("application/json;q=0.5, text/csv"), &[JSON, CSV]), Some(CSV));
        assert_eq!(best(Some("text/csv, */*"), &[JSON, CSV]), Some(JSON));
        assert_eq!(best(Some("text/csv, */*;q=0.1"), &[JSON, CSV]), Some(CSV));
        assert_eq!(best(Some("text/csv"), &[JSON]), None);
    }
}
