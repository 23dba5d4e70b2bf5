//! A component of what somebody hands in.
//!
//! A component stays what it is, byte for byte, so that its digest is the one
//! that its maker signed. A core module is what compilers give that know nothing
//! of components; where it carries its component-type section it can be wrapped,
//! which is done here, in process, and is deterministic: the same module gives
//! the same bytes with the same `dsh`. Its manifest moves outside with it. One for
//! WASI's first preview, which C, Go and Zig still compile for, gets wasmtime's
//! adapter around it.
//!
//! The encoder is other people's code over bytes of strangers: it runs behind a
//! size cap and after validation, and a panic of it is an error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW1, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Encoding, Parser, Payload, Validator, WasmFeatures};
use wit_component::ComponentEncoder;

use crate::component::MAX_SIZE;
use crate::error::Error;
use crate::manifest;

/// What came out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Componentised {
    /// The component.
    pub component: Vec<u8>,
    /// Whether it was made of a core module.
    pub made: bool,
}

/// A component of these bytes: as they are, or made of a core module with a
/// component-type section. What is neither is left as it is too, so that
/// [`crate::Description::read`] says what is wrong with it.
///
/// # Errors
/// Too large, or a core module that no component can be made of, with the reason.
pub fn componentise(bytes: Vec<u8>) -> Result<Componentised, Error> {
    let size = bytes.len() as u64;
    if size > MAX_SIZE {
        return Err(Error::TooLarge {
            size,
            max: MAX_SIZE,
        });
    }
    if !Parser::is_core_wasm(&bytes) {
        return Ok(Componentised {
            component: bytes,
            made: false,
        });
    }
    let found = look(&bytes)?;
    if !found.described {
        return Err(Error::CoreModule);
    }
    let component = encode(&bytes, found.preview1)?;
    let component = match found.manifest {
        Some(manifest) => with_section(component, manifest::SECTION, &manifest),
        None => component,
    };
    Ok(Componentised {
        component,
        made: true,
    })
}

/// What a core module says of itself.
#[derive(Default)]
struct Found {
    /// It has a component-type section.
    described: bool,
    /// It imports functions of WASI's first preview.
    preview1: bool,
    manifest: Option<Vec<u8>>,
}

fn look(module: &[u8]) -> Result<Found, Error> {
    let broken = |error: wasmparser::BinaryReaderError| Error::NotWasm(error.message().to_owned());
    Validator::new_with_features(WasmFeatures::default())
        .validate_all(module)
        .map_err(broken)?;
    let mut found = Found::default();
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(broken)? {
            Payload::Version {
                encoding: Encoding::Component,
                ..
            } => return Err(Error::NotWasm("a component inside a module".to_owned())),
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.map_err(broken)?;
                    found.preview1 |= import.module == PREVIEW1;
                }
            }
            Payload::CustomSection(section) => {
                if section.name().starts_with("component-type") {
                    found.described = true;
                } else if section.name() == manifest::SECTION {
                    if found.manifest.is_some() {
                        return Err(Error::Manifest("the module has two of them".to_owned()));
                    }
                    found.manifest = Some(section.data().to_vec());
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

fn encode(module: &[u8], preview1: bool) -> Result<Vec<u8>, Error> {
    let made = catch_unwind(AssertUnwindSafe(|| {
        let encoder = ComponentEncoder::default().validate(true).module(module)?;
        let mut encoder = if preview1 {
            encoder.adapter(PREVIEW1, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?
        } else {
            encoder
        };
        encoder.encode()
    }));
    match made {
        Ok(Ok(component)) => Ok(component),
        Ok(Err(error)) => Err(Error::Componentise(one_line(&format!("{error:#}")))),
        Err(_) => Err(Error::Componentise(
            "its component-type section is damaged".to_owned(),
        )),
    }
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.floor_char_boundary(400);
    line[..end].to_owned()
}

/// A binary with one more custom section.
fn with_section(mut binary: Vec<u8>, name: &str, content: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(content.len() + name.len() + 5);
    leb128(&mut body, name.len());
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(content);
    binary.push(0);
    leb128(&mut binary, body.len());
    binary.append(&mut body);
    binary
}

fn leb128(out: &mut Vec<u8>, mut number: usize) {
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}

#[cfg(test)]
#[path = "componentise_tests.rs"]
mod tests;
