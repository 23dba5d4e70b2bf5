//! Which addresses a request may reach, as a pure function of the address.
//!
//! The decision is made on the address that is connected to, never on the text
//! that led there: names, decimal and octal spellings and IPv6 forms that carry
//! an IPv4 address all end as an [`IpAddr`], and only that is judged. Unknown
//! ranges count as not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far a granted origin may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Public addresses only: the origin is a component's own wish.
    Public,
    /// A person wrote this origin: loopback and private networks too, and a
    /// link-local address where it was written as such.
    Named,
}

impl Reach {
    /// Whether an origin of this reach may lead to the address; `literal` tells
    /// that the origin's host is the address itself, not a name.
    #[must_use]
    pub fn permits(self, address: IpAddr, literal: bool) -> bool {
        match (scope(address), self) {
            (Scope::Public, _) | (Scope::Loopback | Scope::Private, Self::Named) => true,
            (Scope::LinkLocal, Self::Named) => literal,
            _ => false,
        }
    }
}

/// What kind of place an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The public internet.
    Public,
    /// This machine.
    Loopback,
    /// A private, shared (RFC 6598) or unique local network.
    Private,
    /// The link, where cloud metadata services live.
    LinkLocal,
    /// Nowhere that a request belongs: unspecified, multicast, reserved,
    /// documentation, or a tunnel into a network that is not public.
    Nowhere,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Nowhere => "reserved",
        })
    }
}

/// Sorts an address (IANA special-purpose registries, RFC 6890 and its heirs).
#[must_use]
pub fn scope(address: IpAddr) -> Scope {
    match address {
        IpAddr::V4(v4) => scope_v4(v4),
        IpAddr::V6(v6) => scope_v6(v6),
    }
}

fn scope_v4(address: Ipv4Addr) -> Scope {
    match address.octets() {
        [127, ..] => Scope::Loopback,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => Scope::Private,
        // Benchmarking; also where some VPN clients put their made-up addresses.
        [198, 18 | 19, ..] => Scope::Private,
        [169, 254, ..] => Scope::LinkLocal,
        [0 | 224..=255, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Scope::Nowhere,
        _ => Scope::Public,
    }
}

fn scope_v6(address: Ipv6Addr) -> Scope {
    if let Some(v4) = address.to_ipv4_mapped() {
        // The system connects to the IPv4 address itself.
        return scope_v4(v4);
    }
    let s = address.segments();
    let tunnelled = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        match scope_v4(Ipv4Addr::new(a, b, c, d)) {
            Scope::Public => Scope::Public,
            _ => Scope::Nowhere,
        }
    };
    match s {
        [0, 0, 0, 0, 0, 0, 0, 1] => Scope::Loopback,
        // NAT64 and 6to4 lead to the IPv4 address that they carry.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => tunnelled(high, low),
        [0xfe80..=0xfebf, ..] => Scope::LinkLocal,
        [0xfc00..=0xfdff, ..] => Scope::Private,
        // Teredo, ORCHID and the rest of 2001::/23; documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Scope::Nowhere,
        [0x2000..=0x3fff, ..] => Scope::Public,
        _ => Scope::Nowhere,
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
