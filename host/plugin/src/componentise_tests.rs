use wit_component::{DecodedWasm, StringEncoding, decode, embed_component_metadata};

use super::*;
use crate::component::Description;

/// A component of the world that the module below is for.
const WORLD: &str = r#"(component
    (import "dsh:plugin/work@0.1.0" (instance (export "cancelled" (func (result bool)))))
    (core module $m (func (export "f")))
    (core instance $i (instantiate $m))
    (func $f (canon lift (core func $i "f")))
    (export "ready" (func $f)))"#;

const MODULE: &str = r#"(module
    (import "dsh:plugin/work@0.1.0" "cancelled" (func (result i32)))
    (func (export "ready")))"#;

fn described(module: &str) -> Vec<u8> {
    let world = wat::parse_str(WORLD).unwrap();
    let DecodedWasm::Component(resolve, world) = decode(&world).unwrap() else {
        panic!("a component was decoded");
    };
    let mut module = wat::parse_str(module).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    module
}

fn reason(bytes: Vec<u8>) -> String {
    componentise(bytes).unwrap_err().to_string()
}

#[test]
fn a_component_stays_what_it_is() {
    let component = wat::parse_str(WORLD).unwrap();
    let made = componentise(component.clone()).unwrap();
    assert_eq!(made.component, component);
    assert!(!made.made);
}

#[test]
fn what_is_no_wasm_is_left_to_who_describes_it() {
    for bytes in [b"".to_vec(), b"#!/bin/sh".to_vec(), b"\0as".to_vec()] {
        let made = componentise(bytes.clone()).unwrap();
        assert_eq!(made.component, bytes);
        assert!(matches!(
            Description::read(&made.component),
            Err(Error::NotWasm(_))
        ));
    }
}

#[test]
fn a_module_with_its_component_type_becomes_a_component_and_keeps_its_manifest() {
    let manifest = br#"{"plugin":{"name":"acme:ready","version":"1.0.0"}}"#;
    let module = with_section(described(MODULE), manifest::SECTION, manifest);
    let made = componentise(module).unwrap();
    assert!(made.made);
    let description = Description::read(&made.component).unwrap();
    assert_eq!(description.imports[0].name(), "dsh:plugin/work@0.1.0");
    assert_eq!(description.exports[0].name(), "ready");
    assert_eq!(description.manifest.unwrap().plugin.name, "acme:ready");
}

#[test]
fn the_same_module_gives_the_same_bytes() {
    let module = described(MODULE);
    let once = componentise(module.clone()).unwrap();
    assert_eq!(componentise(module).unwrap(), once);
}

#[test]
fn a_module_that_says_nothing_of_components_is_refused_with_how_to_make_one() {
    let module = wat::parse_str("(module)").unwrap();
    assert!(matches!(
        componentise(module.clone()),
        Err(Error::CoreModule)
    ));
    let error = reason(module);
    assert!(
        error.contains("component-type") && error.contains("wasm-tools component embed"),
        "{error}"
    );
}

#[test]
fn a_module_for_the_first_preview_of_wasi_is_adapted() {
    let writing = r#"(module
        (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))"#;
    let memory = r#"(memory (export "memory") 1)
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 64)
        (func (export "ready")"#;
    let module = MODULE
        .replace("(module", writing)
        .replace(r#"(func (export "ready")"#, memory);
    let module = described(&module);
    let once = componentise(module.clone()).unwrap();
    let description = Description::read(&once.component).unwrap();
    let streams = |import: &&crate::Interface| import.name().starts_with("wasi:io/streams@0.2.");
    assert!(
        description.imports.iter().find(streams).is_some(),
        "{:?}",
        description.imports
    );
    assert_eq!(componentise(module).unwrap(), once);
    let strange = MODULE.replace(
        "(module",
        r#"(module (import "wasi_unstable" "fd_write" (func))"#,
    );
    assert!(reason(described(&strange)).contains("wasi_unstable"));
}

#[test]
fn a_module_that_does_not_do_what_its_component_type_says_is_refused() {
    let error = reason(described(r#"(module (func (export "other")))"#));
    assert!(error.contains("ready") && !error.contains('\n'), "{error}");
    let error = reason(described(r#"(module (func (export "ready") (param i32)))"#));
    assert!(error.contains("ready"), "{error}");
}

#[test]
fn damage_of_every_kind_is_an_error_and_no_panic() {
    let whole = described(MODULE);
    for at in 8..whole.len() {
        let _ = componentise(whole[..at].to_vec());
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            let _ = componentise(damaged);
        }
    }
}

#[test]
fn two_manifests_are_one_too_many() {
    let manifest = br#"{"plugin":{"name":"acme:ready","version":"1.0.0"}}"#;
    let once = with_section(described(MODULE), manifest::SECTION, manifest);
    let twice = with_section(once, manifest::SECTION, manifest);
    assert!(matches!(componentise(twice), Err(Error::Manifest(_))));
}

#[test]
fn lengths_are_written_as_wasm_reads_them() {
    for (number, expected) in [
        (0, &[0][..]),
        (127, &[0x7f]),
        (128, &[0x80, 1]),
        (624_485, &[0xe5, 0x8e, 0x26]),
    ] {
        let mut out = vec![];
        leb128(&mut out, number);
        assert_eq!(out, expected);
    }
}
