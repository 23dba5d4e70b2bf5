use super::*;

fn scope_of(text: &str) -> Scope {
    scope(text.parse().expect(text))
}

#[test]
fn every_special_range_is_sorted_at_both_of_its_edges() {
    let table = [
        ("1.1.1.1", Scope::Public),
        ("9.255.255.255", Scope::Public),
        ("10.0.0.0", Scope::Private),
        ("10.255.255.255", Scope::Private),
        ("11.0.0.0", Scope::Public),
        ("100.63.255.255", Scope::Public),
        ("100.64.0.0", Scope::Private),
        ("100.127.255.255", Scope::Private),
        ("100.128.0.0", Scope::Public),
        ("126.255.255.255", Scope::Public),
        ("127.0.0.1", Scope::Loopback),
        ("127.255.255.254", Scope::Loopback),
        ("128.0.0.1", Scope::Public),
        ("169.253.255.255", Scope::Public),
        ("169.254.169.254", Scope::LinkLocal),
        ("172.15.255.255", Scope::Public),
        ("172.16.0.1", Scope::Private),
        ("172.31.255.255", Scope::Private),
        ("172.32.0.0", Scope::Public),
        ("192.0.0.192", Scope::Nowhere),
        ("192.0.2.1", Scope::Nowhere),
        ("192.88.99.1", Scope::Nowhere),
        ("192.168.0.1", Scope::Private),
        ("192.169.0.1", Scope::Public),
        ("198.18.0.1", Scope::Private),
        ("198.51.100.7", Scope::Nowhere),
        ("203.0.113.7", Scope::Nowhere),
        ("0.0.0.0", Scope::Nowhere),
        ("0.1.2.3", Scope::Nowhere),
        ("224.0.0.1", Scope::Nowhere),
        ("240.0.0.1", Scope::Nowhere),
        ("255.255.255.255", Scope::Nowhere),
        ("2606:4700::1111", Scope::Public),
        ("::", Scope::Nowhere),
        ("::1", Scope::Loopback),
        ("::2", Scope::Nowhere),
        ("::127.0.0.1", Scope::Nowhere),
        ("fe80::1", Scope::LinkLocal),
        ("febf::1", Scope::LinkLocal),
        ("fec0::1", Scope::Nowhere),
        ("fc00::1", Scope::Private),
        ("fdff::1", Scope::Private),
        ("ff02::1", Scope::Nowhere),
        ("100::1", Scope::Nowhere),
        ("2001::1", Scope::Nowhere),
        ("2001:1ff::1", Scope::Nowhere),
        ("2001:200::1", Scope::Public),
        ("2001:db8::1", Scope::Nowhere),
        ("3fff:fff::1", Scope::Nowhere),
        ("4000::1", Scope::Nowhere),
    ];
    for (text, expected) in table {
        assert_eq!(scope_of(text), expected, "{text}");
    }
}

#[test]
fn an_ipv4_address_inside_an_ipv6_one_is_judged_as_itself() {
    let table = [
        ("::ffff:127.0.0.1", Scope::Loopback),
        ("::ffff:10.1.2.3", Scope::Private),
        ("::ffff:169.254.169.254", Scope::LinkLocal),
        ("::ffff:1.1.1.1", Scope::Public),
        // 6to4
        ("2002:101:101::1", Scope::Public),
        ("2002:7f00:1::1", Scope::Nowhere),
        ("2002:a9fe:a9fe::", Scope::Nowhere),
        ("2002:c0a8:1::1", Scope::Nowhere),
        // NAT64
        ("64:ff9b::101:101", Scope::Public),
        ("64:ff9b::7f00:1", Scope::Nowhere),
        ("64:ff9b::a9fe:a9fe", Scope::Nowhere),
        ("64:ff9b:1::101:101", Scope::Nowhere),
    ];
    for (text, expected) in table {
        assert_eq!(scope_of(text), expected, "{text}");
    }
}

#[test]
fn only_an_origin_that_a_person_wrote_leaves_the_public_internet() {
    let public = "1.1.1.1".parse().unwrap();
    let loopback = "127.0.0.1".parse().unwrap();
    let private = "192.168.1.2".parse().unwrap();
    let metadata = "169.254.169.254".parse().unwrap();
    let nowhere = "0.0.0.0".parse().unwrap();
    assert!(Reach::Public.permits(public, true) && Reach::Named.permits(public, false));
    for address in [loopback, private, metadata, nowhere] {
        assert!(!Reach::Public.permits(address, true), "{address}");
    }
    assert!(Reach::Named.permits(loopback, false));
    assert!(Reach::Named.permits(private, false));
    assert!(Reach::Named.permits(metadata, true));
    assert!(
        !Reach::Named.permits(metadata, false),
        "a name must not lead to the metadata service"
    );
    assert!(!Reach::Named.permits(nowhere, true));
}
