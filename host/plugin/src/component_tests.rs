use super::*;

#[test]
fn an_interface_of_the_contract_has_a_short_name_and_a_version() {
    assert_eq!(
        Interface::new("dsh:plugin/tool@0.1.0").of_contract(),
        Some(("tool", "0.1.0"))
    );
    for other in ["dsh:plugin/tool", "wasi:cli/exit@0.2.6", "tool", ""] {
        assert_eq!(Interface::new(other).of_contract(), None, "{other}");
    }
}

#[test]
fn sections_that_claim_to_be_longer_than_the_file_are_refused() {
    // A component's header, then a nested module that claims 4 GiB.
    let mut wasm = b"\0asm\x0d\0\x01\0".to_vec();
    wasm.extend([1, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert!(matches!(Description::read(&wasm), Err(Error::NotWasm(_))));
}

#[test]
fn an_empty_component_imports_and_exports_nothing() {
    let description = Description::read(b"\0asm\x0d\0\x01\0").unwrap();
    assert!(
        description.imports.is_empty()
            && description.exports.is_empty()
            && description.manifest.is_none()
    );
}

fn section(name: &str, content: &[u8]) -> Vec<u8> {
    let mut body = vec![u8::try_from(name.len()).unwrap()];
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(content);
    let mut section = vec![0, u8::try_from(body.len()).unwrap()];
    section.extend(body);
    section
}

#[test]
fn a_component_has_one_manifest() {
    let mut wasm = b"\0asm\x0d\0\x01\0".to_vec();
    let manifest = section(
        "dsh:manifest",
        br#"{"plugin":{"name":"a:b","version":"1.0.0"}}"#,
    );
    wasm.extend(&manifest);
    assert!(Description::read(&wasm).unwrap().manifest.is_some());
    wasm.extend(&manifest);
    let error = Description::read(&wasm).unwrap_err();
    assert!(matches!(error, Error::Manifest(_)), "{error}");
}

#[test]
fn metadata_is_what_other_tools_wrote_and_the_manifest_comes_first() {
    let mut wasm = b"\0asm\x0d\0\x01\0".to_vec();
    wasm.extend(section("authors", b"Somebody"));
    wasm.extend(section("licenses", b"MIT"));
    wasm.extend(section("version", b"\xff"));
    wasm.extend(section(
        "producers",
        b"\x01\x08language\x01\x04Rust\x061.95.0",
    ));
    let size = wasm.len() as u64;
    let description = Description::read(&wasm).unwrap();
    assert_eq!(description.size, size);
    assert_eq!(description.contract, None);
    assert_eq!(description.authors(), ["Somebody"]);
    assert_eq!(description.licence(), Some("MIT"));
    assert_eq!(description.metadata.producers, ["language Rust 1.95.0"]);
    let said = br#"{"plugin":{"name":"a:b","version":"1.0.0","authors":["A"],"licence":"0BSD"}}"#;
    wasm.extend(section("dsh:manifest", said));
    let description = Description::read(&wasm).unwrap();
    assert_eq!(description.authors(), ["A"]);
    assert_eq!(description.licence(), Some("0BSD"));
    // Damaged, it says nothing.
    let mut wasm = b"\0asm\x0d\0\x01\0".to_vec();
    wasm.extend(section("producers", b"\xff\xff"));
    assert_eq!(
        Description::read(&wasm).unwrap().metadata,
        Metadata::default()
    );
}

#[test]
fn the_contract_is_the_newest_that_is_named() {
    let text = r#"(component
        (import "dsh:plugin/log@0.1.9" (instance))
        (import "dsh:plugin/work@0.1.10" (instance))
        (import "wasi:cli/exit@0.2.6" (instance)))"#;
    let description = Description::read(&wat::parse_str(text).unwrap()).unwrap();
    assert_eq!(description.contract.as_deref(), Some("0.1.10"));
}

#[test]
fn damage_of_every_kind_is_one_line_and_no_panic() {
    let text = r#"(component
        (import "dsh:plugin/journal@0.1.0" (instance))
        (core module (func (export "f"))))"#;
    let mut whole = wat::parse_str(text).unwrap();
    let manifest = br#"{"plugin":{"name":"a:b","version":"1.0.0"},"rows":[{"id":"b"}],"wants":{"journal":["todo/write"]},"events":{"appends":["a/seen"]}}"#;
    let mut section = vec![
        0,
        u8::try_from((manifest.len() + 13) & 0x7f).unwrap() | 0x80,
        1,
    ];
    section.push(12);
    section.extend(b"dsh:manifest");
    section.extend(manifest);
    whole.extend(section);
    Description::read(&whole).unwrap();
    for at in 0..whole.len() {
        for value in [0, 1, b'"', b'{', 0x7f, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            for bytes in [&damaged[..], &damaged[..at]] {
                if let Err(error) = Description::read(bytes) {
                    assert!(!error.to_string().contains('\n'), "{error}");
                }
            }
        }
    }
}
