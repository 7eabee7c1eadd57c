//! Names are looked up for every new connection, and only public addresses are given to whoever connects: a name that
//! led elsewhere when its sink was saved is judged by where it leads now.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::{PrivateAddresses, is_public, refused};

/// Looks names up.
pub(crate) struct Resolver(pub(crate) PrivateAddresses);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let private = self.0;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let judged = judged(found, private)?;
            Ok(Box::new(judged.into_iter()) as Addrs)
        })
    }
}

/// One that is not public spoils them all: whoever gives both wants one to be taken for the other.
fn judged(found: Vec<SocketAddr>, private: PrivateAddresses) -> Result<Vec<SocketAddr>, std::io::Error> {
    match found.iter().find(|address| private == PrivateAddresses::Refuse && !is_public(address.ip())) {
        Some(address) => Err(std::io::Error::other(refused(address.ip()))),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_that_is_not_public_spoils_them_all() {
        let both: Vec<SocketAddr> = vec!["93.184.216.34:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap()];
        assert!(judged(both.clone(), PrivateAddresses::Refuse).is_err());
        assert_eq!(judged(both.clone(), PrivateAddresses::Allow).unwrap(), both);
        assert_eq!(judged(both[..1].to_vec(), PrivateAddresses::Refuse).unwrap(), both[..1]);
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_not_connected_to() {
        let name = || "localhost".parse().unwrap();
        assert!(Resolver(PrivateAddresses::Refuse).resolve(name()).await.is_err());
        assert!(Resolver(PrivateAddresses::Allow).resolve(name()).await.unwrap().next().is_some());
    }
}
