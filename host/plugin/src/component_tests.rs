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
