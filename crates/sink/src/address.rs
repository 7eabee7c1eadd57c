//! Where events may be sent. What is not plainly a public address is refused: an address that the server can reach and
//! whoever saves a sink cannot would be asked on his behalf.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Longest address.
const ADDRESS_BYTES_MAX: usize = 2_000;

/// Whether events may be sent to addresses that are not public, and without TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PrivateAddresses {
    /// No.
    #[default]
    Refuse,
    /// Yes: whoever runs the server said so.
    Allow,
}

/// Takes an address apart; else why nothing is sent there.
pub(crate) fn parse(text: &str, private: PrivateAddresses) -> Result<Url, String> {
    if text.len() > ADDRESS_BYTES_MAX {
        return Err(format!("must have at most {ADDRESS_BYTES_MAX} bytes"));
    }
    let url = Url::parse(text).map_err(|_| "must be an address of HTTP".to_owned())?;
    let is_plain = url.scheme() == "http";
    if !is_plain && url.scheme() != "https" {
        return Err("must begin with https://".into());
    }
    if is_plain && private == PrivateAddresses::Refuse {
        return Err(
            "must begin with https:// (http:// only where the server allows private addresses)".into()
        );
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must hold no user and no password".into());
    }
    if url.fragment().is_some() {
        return Err("must hold no fragment".into());
    }
    if private == PrivateAddresses::Refuse {
        match literal(&url) {
            Some(address) if !is_public(address) => return Err(refused(address)),
            Some(_) => {}
            None if is_local_name(&url) => return Err("must be a public name".into()),
            None => {}
        }
    }
    Ok(url)
}

/// The address that a URL names by itself, in whatever form it was written: the library has brought it into one.
pub(crate) fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_local_name(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host.ends_with(".internal")
        || host.ends_with(".local")
}

pub(crate) fn refused(address: IpAddr) -> String {
    format!("leads to {address}, which is no public address")
}

/// Judges an address, and every address that its name has now. A name that has none yet may be saved.
pub async fn check(text: &str, private: PrivateAddresses) -> Result<(), String> {
    let url = parse(text, private)?;
    if private == PrivateAddresses::Allow || literal(&url).is_some() {
        return Ok(());
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let Ok(found) = tokio::net::lookup_host((host, port)).await else { return Ok(()) };
    match found.map(|found| found.ip()).find(|address| !is_public(*address)) {
        Some(address) => Err(refused(address)),
        None => Ok(()),
    }
}

/// Whether an address is one that anybody in the world could ask.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_reserved = match (a, b, c) {
        // This network, shared by carriers, protocol assignments, benchmarks, relays of 6to4, and the rest.
        (0, ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _) | (240..=255, ..) => {
            true
        }
        _ => false,
    };
    !(is_reserved
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || address.is_unspecified()
        || address.is_broadcast())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        // Addresses of the older kind in another dress: mapped, compatible, translated, 6to4.
        (0, 0) if c == 0 && d == 0 && e == 0 => f == 0xffff && embedded(g, h),
        (0x64, 0xff9b) if (c, d, e, f) == (0, 0, 0, 0) => embedded(g, h),
        (0x2002, _) => embedded(b, c),
        // Tunnels, benchmarks and documentation.
        (0x2001, 0 | 2 | 0xdb8) | (0x3fff, 0..=0x0fff) => false,
        // Only this part is given out for use by everybody.
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_is_refused_in_every_form() {
        for bad in [
            "https://169.254.169.254/",
            "https://127.0.0.1:6379",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://[::127.0.0.1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://[2002:a9fe:a9fe::]/",
            "https://[fe80::1]/",
            "https://[fd00::1]/",
            "https://[2001:db8::1]/",
            "https://[ff02::1]/",
            "https://0x7f000001/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://0177.0.0.1/",
            "https://127.1/",
            "https://10.1.2.3/",
            "https://172.16.0.1/",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://0.0.0.0/",
            "https://255.255.255.255/",
            "https://224.0.0.1/",
            "https://198.18.0.1/",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://metadata.google.internal/",
            "https://x.localhost/",
            "https://１２７.0.0.1/",
            "http://example.com/",
            "file:///etc/passwd",
            "gopher://example.com/",
            "https://user:pass@example.com/",
            "https://user@example.com/",
            "https://:pass@example.com/",
            "https://example.com/#x",
            "https://",
            "//example.com/",
            "example.com",
            "",
        ] {
            assert!(parse(bad, PrivateAddresses::Refuse).is_err(), "{bad}");
        }
        let long = format!("https://example.com/{}", "x".repeat(2_000));
        assert!(parse(&long, PrivateAddresses::Refuse).is_err());
    }

    #[test]
    fn what_is_public_is_taken() {
        for good in
            ["https://example.com/in?x=1", "https://93.184.216.34/", "https://[2606:2800:220:1::1]:8443/"]
        {
            assert!(parse(good, PrivateAddresses::Refuse).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_server_that_allows_private_addresses_still_refuses_other_forms() {
        let allow = PrivateAddresses::Allow;
        for good in ["http://127.0.0.1:9000/in", "http://[::1]/", "http://localhost/"] {
            assert!(parse(good, allow).is_ok(), "{good}");
        }
        for bad in ["file:///etc/passwd", "http://user:pass@127.0.0.1/", "ftp://127.0.0.1/"] {
            assert!(parse(bad, allow).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_name_is_judged_by_the_addresses_that_it_has() {
        // Every machine has this name in its hosts, and it is none that the list of names knows.
        let name = std::fs::read_to_string("/etc/hostname").unwrap();
        let address = format!("https://{}/", name.trim());
        let found = tokio::net::lookup_host((name.trim(), 443)).await;
        if found.is_ok_and(|mut found| found.any(|found| !is_public(found.ip()))) {
            let why = check(&address, PrivateAddresses::Refuse).await.unwrap_err();
            assert!(why.contains("no public address"), "{why}");
        }
        assert_eq!(check("https://no-such-name.invalid/", PrivateAddresses::Refuse).await, Ok(()));
    }
}
