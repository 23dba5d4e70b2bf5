//! Names are resolved by the connector, once, and filtered there.
//!
//! Checking a name first and connecting to it afterwards would ask the name
//! server twice, and it may answer differently. So the filter is the resolver of
//! the client itself: what it lets through is what gets connected to. A client
//! has one reach, so that a connection that one reach may use is never found in
//! the pool by a request of another.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::{Reach, scope};

/// A name led only to addresses that its origin does not reach.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(String);

/// The system's resolver behind a [`Reach`].
pub(crate) struct Resolver {
    pub(crate) reach: Reach,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.reach;
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let open = filter(&name, &found, reach)?;
            Ok(Box::new(open.into_iter()) as Addrs)
        })
    }
}

fn filter(name: &str, found: &[SocketAddr], reach: Reach) -> Result<Vec<SocketAddr>, Refused> {
    let open: Vec<SocketAddr> = found
        .iter()
        .copied()
        .filter(|address| reach.permits(address.ip(), false))
        .collect();
    match (open.is_empty(), found.first()) {
        (true, Some(first)) => Err(Refused(denial(name, first.ip()))),
        _ => Ok(open),
    }
}

/// The words for an address that is out of reach.
pub(crate) fn denial(host: &str, address: std::net::IpAddr) -> String {
    format!(
        "{host} leads to {address}, a {} address, which this grant does not reach; \
         an origin that you write in settings.yaml or a patch does",
        scope(address)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts
            .iter()
            .map(|text| SocketAddr::new(text.parse().unwrap(), 0))
            .collect()
    }

    #[test]
    fn a_name_with_mixed_addresses_keeps_only_those_in_reach() {
        let found = addresses(&["10.0.0.1", "1.1.1.1", "::1"]);
        assert_eq!(
            filter("x", &found, Reach::Public).unwrap(),
            addresses(&["1.1.1.1"])
        );
        assert_eq!(filter("x", &found, Reach::Named).unwrap(), found);
    }

    #[test]
    fn a_name_with_no_address_in_reach_is_refused_with_the_reason() {
        let error = filter(
            "rebind.example",
            &addresses(&["169.254.169.254"]),
            Reach::Named,
        )
        .unwrap_err();
        assert!(error.to_string().contains("link-local"), "{error}");
    }
}
