//! Query strings: strict, each parameter at most once, unknown ones refused.

use std::borrow::Cow;
use std::time::Duration;

use holdfast_core::time::Timestamp;
use holdfast_wire::Code;
use sha2::{Digest, Sha256};

use super::cursor::{Cursor, Key};
use super::field::TextId;
use super::report::{Fault, Located, Report};
use super::time::instant;
use crate::problem::Problem;

/// Items of a page, if the client does not say.
const LIMIT: usize = 50;
/// Most items of a page.
const LIMIT_MAX: usize = 500;
/// Longest wait for an order, in seconds.
const WAIT_SECONDS_MAX: u64 = 30;
/// Parameters that say which page, not which list.
const PAGE_PARAMETERS: [&str; 2] = ["limit", "cursor"];

/// A query string that is read parameter by parameter.
pub(crate) struct Query<'q> {
    pairs: Vec<(Cow<'q, str>, Cow<'q, str>)>,
    known: Vec<&'static str>,
    report: Report,
}

/// Which page of a list is asked for.
pub(crate) struct PageQuery<K> {
    /// The store's page.
    pub(crate) page: holdfast_store::Page<K>,
    /// Makes the next page's cursor.
    pub(crate) cursor: Cursor,
}

impl<'q> Query<'q> {
    /// Takes the query of a request, without its question mark.
    pub(crate) fn new(query: Option<&'q str>) -> Result<Self, Problem> {
        let mut this = Self { pairs: Vec::new(), known: Vec::new(), report: Report::default() };
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let Some(name) = decoded(name) else {
                this.refuse("", Code::UnknownField, "a parameter's name is not UTF-8");
                continue;
            };
            let Some(value) = decoded(value) else {
                this.refuse(&name, Code::InvalidValue, "is not valid percent-encoded UTF-8");
                continue;
            };
            if this.pairs.iter().any(|(known, _)| *known == name) {
                this.refuse(&name, Code::DuplicateField, "the parameter stands twice");
                continue;
            }
            this.pairs.push((name, value));
        }
        // What cannot even be taken apart is not judged further.
        std::mem::take(&mut this.report).into_result(Some(()))?;
        Ok(this)
    }

    fn refuse(&mut self, name: &str, code: Code, detail: &str) {
        self.report.add(Located::new(pointer(name), code, detail));
    }

    fn value(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.to_string())
    }

    /// An identifier that clients make.
    pub(crate) fn id<T: TextId>(&mut self, name: &'static str) -> Option<T> {
        let text = self.value(name)?;
        let read = T::from_text(&text).map_err(|why| Fault::new(Code::InvalidIdentifier, why.to_string()));
        self.report.take(|| pointer(name), read)
    }

    /// An identifier that Holdfast makes.
    pub(crate) fn number_id<T>(&mut self, name: &'static str, parse: fn(&str) -> Option<T>) -> Option<T> {
        let text = self.value(name)?;
        let read = parse(&text).ok_or_else(|| Fault::new(Code::InvalidIdentifier, "must be a UUID"));
        self.report.take(|| pointer(name), read)
    }

    /// A word of a closed vocabulary.
    pub(crate) fn word<T>(&mut self, name: &'static str, parse: fn(&str) -> Option<T>) -> Option<T> {
        let text = self.value(name)?;
        let read = parse(&text).ok_or_else(|| Fault::new(Code::InvalidValue, "is not an allowed word"));
        self.report.take(|| pointer(name), read)
    }

    /// Text of bounded length that somebody else takes apart.
    pub(crate) fn text(&mut self, name: &'static str, chars_max: usize) -> Option<String> {
        let text = self.value(name)?;
        let fits = (1..=chars_max).contains(&text.chars().count());
        let why = || Fault::new(Code::InvalidValue, "is empty or too long");
        self.report.take(|| pointer(name), fits.then_some(text).ok_or_else(why))
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.word(name, |text| match text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
    }

    /// A whole number, at most this.
    pub(crate) fn integer(&mut self, name: &'static str, most: u64) -> Option<u64> {
        // Positions are numbers of SQL's signed kind.
        let most = most.min(i64::MAX.unsigned_abs());
        let text = self.value(name)?;
        let read = digits_of(&text).filter(|number| *number <= most);
        let why = || Fault::new(Code::InvalidValue, format!("must be a whole number up to {most}"));
        self.report.take(|| pointer(name), read.ok_or_else(why))
    }

    /// A time with its offset.
    pub(crate) fn time(&mut self, name: &'static str) -> Option<Timestamp> {
        let text = self.value(name)?;
        let read = instant().parse(&text).map_err(|why| Fault::new(Code::InvalidTime, why));
        self.report.take(|| pointer(name), read)
    }

    /// A wait like `30s` or `30`, bounded.
    pub(crate) fn wait(&mut self, name: &'static str) -> Option<Duration> {
        self.word(name, |text| {
            let digits = text.strip_suffix('s').unwrap_or(text);
            let seconds = digits_of(digits).filter(|seconds| *seconds <= WAIT_SECONDS_MAX)?;
            Some(Duration::from_secs(seconds))
        })
    }

    /// Most items, if the client says how many.
    pub(crate) fn limit(&mut self) -> usize {
        let limit = self.word("limit", |text| {
            let limit = usize::try_from(digits_of(text)?).ok()?;
            (1..=LIMIT_MAX).contains(&limit).then_some(limit)
        });
        limit.unwrap_or(LIMIT)
    }

    /// `limit` and `cursor` of a list. Must be called after its filters.
    pub(crate) fn page<K: Key>(&mut self) -> Option<PageQuery<K>> {
        let limit = self.limit();
        let cursor = Cursor::of::<K>(self.filters());
        let after = match self.value("cursor") {
            None => None,
            Some(text) => {
                let read = cursor.decode(&text).ok_or_else(|| {
                    Fault::new(Code::InvalidValue, "is not a cursor of this list with these filters")
                });
                Some(self.report.take(|| pointer("cursor"), read)?)
            }
        };
        Some(PageQuery { page: holdfast_store::Page { after, limit }, cursor })
    }

    /// A hash of everything that says which list this is.
    fn filters(&self) -> [u8; 32] {
        let mut filters: Vec<_> =
            self.pairs.iter().filter(|(name, _)| !PAGE_PARAMETERS.contains(&&**name)).collect();
        filters.sort();
        let mut hash = Sha256::new();
        for (name, value) in filters {
            for text in [name, value] {
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text.as_bytes());
            }
        }
        hash.finalize().into()
    }

    /// What was read, if nothing is wrong and nothing is left.
    pub(crate) fn finish<T>(mut self, read: Option<T>) -> Result<T, Problem> {
        let unknown: Vec<_> = self
            .pairs
            .iter()
            .filter(|(name, _)| !self.known.contains(&&**name))
            .map(|(name, _)| pointer(name))
            .collect();
        for pointer in unknown {
            self.report.add(Located::new(pointer, Code::UnknownField, "this parameter is not known"));
        }
        self.report.into_result(read)
    }
}

fn pointer(name: &str) -> String {
    let mut pointer = "/query".to_owned();
    super::json::push_key(&mut pointer, name);
    pointer
}

fn digits_of(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Decodes `%41` and `+`. Strictly: a filter that is silently changed would show another list.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|b| matches!(b, b'%' | b'+')) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::field::order_id_of;
    use holdfast_core::id::{Account, CampaignId, OrderId};

    #[derive(Debug, PartialEq)]
    struct Read {
        account: Option<Account>,
        flag: Option<bool>,
        after: Option<OrderId>,
        limit: usize,
    }

    fn list(query: &str) -> Result<(Read, Cursor), Vec<(String, String)>> {
        let run = || {
            let mut query = Query::new(Some(query))?;
            let account = query.id("account");
            query.id::<CampaignId>("campaign_id");
            let flag = query.flag("refund_due");
            let page = query.page::<OrderId>();
            let read = page.map(|page| {
                let (after, limit) = (page.page.after, page.page.limit);
                (Read { account, flag, after, limit }, page.cursor)
            });
            query.finish(read)
        };
        run().map_err(|problem| problem.pointers())
    }

    #[test]
    fn parameters_are_decoded_exactly() {
        let (read, _) = list("account=A%2fB+%C3%A9&refund_due=true&limit=500").expect("read");
        assert_eq!(read.account.map(|a| a.to_string()), Some("A/B é".into()));
        assert_eq!((read.flag, read.limit), (Some(true), 500));
        assert_eq!(list("").expect("read").0.limit, LIMIT);
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (query, pointer, code) in [
            ("acount=1", "/query/acount", "unknown_field"),
            ("account=%ff", "/query/account", "invalid_value"),
            ("account=%4", "/query/account", "invalid_value"),
            ("account=a&account=a", "/query/account", "duplicate_field"),
            ("account=", "/query/account", "invalid_identifier"),
            ("refund_due=1", "/query/refund_due", "invalid_value"),
            ("limit=0", "/query/limit", "invalid_value"),
            ("limit=501", "/query/limit", "invalid_value"),
            ("limit=+5", "/query/limit", "invalid_value"),
            ("limit=99999999999999999999", "/query/limit", "invalid_value"),
            ("cursor=nonsense", "/query/cursor", "invalid_value"),
        ] {
            let errors = list(query).expect_err("refused");
            assert_eq!(errors, [(pointer.to_owned(), code.to_owned())], "{query}");
        }
    }

    #[test]
    fn a_cursor_fits_only_its_own_filters() {
        let (_, cursor) = list("account=a&campaign_id=c").expect("read");
        let id = order_id_of("01937a5e-0000-7000-8000-0000000000ff").expect("an id");
        let text = cursor.encode(&id);
        let again = list(&format!("campaign_id=c&account=a&limit=7&cursor={text}")).expect("read");
        assert_eq!(again.0.after, Some(id));
        for other in ["account=b&campaign_id=c", "account=a", "account=a&campaign_id=c&refund_due=true"] {
            let errors = list(&format!("{other}&cursor={text}")).expect_err("refused");
            assert_eq!(errors, [("/query/cursor".to_owned(), "invalid_value".to_owned())], "{other}");
        }
    }

    #[test]
    fn waits_are_bounded() {
        let wait = |text: &str| {
            let mut query = Query::new(Some(text)).expect("a query");
            let wait = query.wait("wait");
            query.finish(Some(())).ok().and(wait)
        };
        assert_eq!(wait("wait=30s"), Some(Duration::from_secs(30)));
        assert_eq!(wait("wait=0"), Some(Duration::ZERO));
        for bad in ["wait=31", "wait=s", "wait=-1", "wait=1m", "wait=1.5s", "wait="] {
            assert_eq!(wait(bad), None, "{bad}");
        }
    }
}
