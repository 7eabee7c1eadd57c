//! Times: RFC 3339 with an offset, or a local time in a named zone.

use holdfast_core::time::Timestamp;
use holdfast_wire::Code;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::field::Field;
use super::json::Json;
use super::report::Fault;

/// An instant; local times only where a zone is given.
pub(crate) struct Instant {
    /// The zone of times without an offset.
    pub(crate) zone: Option<TimeZone>,
}

/// An instant with its offset.
pub(crate) const fn instant() -> Instant {
    Instant { zone: None }
}

/// The instant that a text with its offset says, as requests are read.
pub fn read_time(text: &str) -> Result<Timestamp, &'static str> {
    instant().parse(text)
}

impl Field for Instant {
    type Out = Timestamp;

    fn code(&self) -> Code {
        Code::InvalidTime
    }

    fn read(&self, json: &Json<'_>) -> Result<Timestamp, Fault> {
        let Json::String(text) = json else { return Err(Fault::new(self.code(), "must be a string")) };
        self.parse(text).map_err(|why| Fault::new(self.code(), why))
    }
}

impl Instant {
    /// The instant that a text says.
    pub(crate) fn parse(&self, text: &str) -> Result<Timestamp, &'static str> {
        const SHAPE: &str = "must be a time like 2026-03-29T12:00:00Z";
        let tail = after_local_time(text).ok_or(SHAPE)?;
        let timestamp = if tail.is_empty() {
            let zone = self.zone.as_ref().ok_or("needs an offset, like Z or +01:00")?;
            let local: DateTime = text.parse().map_err(|_| "is not a time of the calendar")?;
            zone.to_ambiguous_timestamp(local)
                .unambiguous()
                .map_err(|_| "does not exist or exists twice in this time zone")?
        } else if is_offset(tail) {
            text.parse::<jiff::Timestamp>().map_err(|_| "is not a time of the calendar")?
        } else {
            return Err(SHAPE);
        };
        Ok(Timestamp(timestamp.as_microsecond()))
    }
}

/// What follows `YYYY-MM-DDTHH:MM:SS[.fraction]`. The library's parser allows more forms than RFC 3339.
fn after_local_time(text: &str) -> Option<&str> {
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let (head, tail) = text.split_at_checked(SHAPE.len())?;
    let fits = head.bytes().zip(SHAPE).all(|(byte, shape)| match shape {
        b'd' => byte.is_ascii_digit(),
        shape => byte == *shape,
    });
    if !fits {
        return None;
    }
    let Some(fraction) = tail.strip_prefix('.') else { return Some(tail) };
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=9).contains(&digits) { fraction.get(digits..) } else { None }
}

/// `Z`, or an offset below a day. The library's parser allows more than RFC 3339 here, too.
fn is_offset(text: &str) -> bool {
    match text.as_bytes() {
        [b'Z'] => true,
        [b'+' | b'-', hours @ .., b':', m1, m2] => {
            let is_hour = matches!(hours, [b'0' | b'1', b'0'..=b'9'] | [b'2', b'0'..=b'3']);
            is_hour && matches!([m1, m2], [b'0'..=b'5', b'0'..=b'9'])
        }
        _ => false,
    }
}

/// The name of a time zone of the IANA database.
pub(crate) struct ZoneName;

impl Field for ZoneName {
    type Out = TimeZone;

    fn code(&self) -> Code {
        Code::InvalidTime
    }

    fn read(&self, json: &Json<'_>) -> Result<TimeZone, Fault> {
        let Json::String(name) = json else { return Err(Fault::new(self.code(), "must be a string")) };
        TimeZone::get(name).map_err(|_| Fault::new(self.code(), "is not a time zone of the IANA database"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> Instant {
        Instant { zone: Some(TimeZone::get("Europe/Berlin").expect("a zone")) }
    }

    #[test]
    fn instants_have_an_offset() {
        assert_eq!(instant().parse("1970-01-01T00:00:01Z"), Ok(Timestamp(1_000_000)));
        assert_eq!(instant().parse("1970-01-01T01:00:00.25+01:00"), Ok(Timestamp(250_000)));
        assert_eq!(
            instant().parse("2026-03-29T02:30:00.123456789-05:00").map(|t| t.0 % 1_000_000),
            Ok(123_456)
        );
        for bad in [
            "2026-03-29",
            "2026-03-29T12:00:00",
            "2026-03-29T12:00Z",
            "2026-03-29 12:00:00Z",
            "20260329T120000Z",
            "2026-02-30T12:00:00Z",
            "2026-03-29T24:00:00Z",
            "2026-03-29T12:00:00.Z",
            "2026-03-29T12:00:00+0100",
            "2026-03-29T12:00:00+24:00",
            "2026-03-29T12:00:00-25:59",
            "2026-03-29T12:00:00+01:60",
            "2026-03-29T12:00:00+01:00[Europe/Berlin]",
            "2026-03-29T12:00:00Z ",
            "1774785600",
            "now",
            "",
            "２026-03-29T12:00:00Z",
        ] {
            assert!(instant().parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn local_times_must_exist_exactly_once() {
        let utc = |text: &str| instant().parse(text).expect("a time");
        assert_eq!(berlin().parse("2026-03-29T01:59:59"), Ok(utc("2026-03-29T00:59:59Z")));
        assert!(berlin().parse("2026-03-29T02:30:00").is_err(), "skipped");
        assert_eq!(berlin().parse("2026-03-29T03:00:00"), Ok(utc("2026-03-29T01:00:00Z")));
        assert_eq!(berlin().parse("2026-10-25T01:59:59"), Ok(utc("2026-10-24T23:59:59Z")));
        assert!(berlin().parse("2026-10-25T02:30:00").is_err(), "ambiguous");
        assert_eq!(berlin().parse("2026-10-25T03:00:00"), Ok(utc("2026-10-25T02:00:00Z")));
        assert_eq!(berlin().parse("2026-10-25T02:30:00+02:00"), Ok(utc("2026-10-25T00:30:00Z")));
        assert!(berlin().parse("2026-10-25").is_err());
    }
}
