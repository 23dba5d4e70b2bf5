//! What bytes are that are no component, in words. A pure function of their beginning.
//!
//! Asked after the component reader refused them, so that a person who gave the wrong file learns which file it is.

/// What this is, and what to do; nothing where the bytes tell nothing.
pub(super) fn told(bytes: &[u8]) -> Option<&'static str> {
    const MODULE: &[u8] = b"\0asm\x01\0\0\0";
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    if bytes.is_empty() {
        return Some("it is empty");
    }
    if starts(MODULE) || starts(COMPONENT) {
        return None;
    }
    if starts(b"\0asm") {
        return Some("it is WebAssembly of another version than this dsh reads");
    }
    if starts(b"\x7fELF") {
        // wasmtime's machine code is an ELF file of its own machine; nobody hands in any other `.cwasm`.
        let wasmtime = bytes
            .windows(9)
            .take(1 << 16)
            .any(|part| part == b".wasmtime");
        return Some(if wasmtime {
            "it is machine code that a wasmtime made (.cwasm), which is never taken from a file; give the component that it was made of"
        } else {
            "it is a native program or library (ELF); a plugin is a WebAssembly component"
        });
    }
    if starts(b"MZ") {
        return Some("it is a Windows program; a plugin is a WebAssembly component");
    }
    if starts(b"\xcf\xfa\xed\xfe") || starts(b"\xca\xfe\xba\xbe") {
        return Some("it is a macOS program; a plugin is a WebAssembly component");
    }
    if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") {
        return Some("it is a zip archive; unpack it and give the .wasm file in it");
    }
    if starts(b"\x1f\x8b") {
        return Some(
            "it is a gzip archive (an npm package or a .tar.gz?); unpack it and give the .wasm file in it",
        );
    }
    if starts(b"\x28\xb5\x2f\xfd") || starts(b"\xfd7zXZ") || starts(b"BZh") {
        return Some("it is compressed; unpack it and give the .wasm file in it");
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Some("it is a tar archive; unpack it and give the .wasm file in it");
    }
    text(bytes)
}

fn text(bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(4096)];
    let head = match std::str::from_utf8(head) {
        Ok(head) => head,
        Err(error) if error.valid_up_to() + 4 > head.len() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    let head = head.trim_start_matches('\u{feff}').trim_start();
    let lower = head
        .get(..head.len().min(64))
        .unwrap_or(head)
        .to_ascii_lowercase();
    if lower.starts_with("<!doctype html") || lower.starts_with("<html") {
        return Some(
            "it is a web page (HTML); the address leads to a page about the file, not to the file",
        );
    }
    if lower.starts_with("(component") || lower.starts_with("(module") {
        return Some("it is WebAssembly text; make a component of it with `wasm-tools parse`");
    }
    if head.starts_with("untrusted comment:") {
        return Some("it is a minisign signature or key; give the component that it belongs to");
    }
    if head.starts_with("version https://git-lfs") {
        return Some("it is a Git LFS pointer; fetch the file that it stands for (`git lfs pull`)");
    }
    if head.starts_with('{') && head.contains("\"name\"") && head.contains("\"version\"") {
        return Some("it is the manifest of an npm package; npm packages are not components");
    }
    let javascript = head.starts_with("#!/usr/bin/env node")
        || [
            "import ",
            "export ",
            "\"use strict\"",
            "'use strict'",
            "const ",
            "module.exports",
            "require(",
        ]
        .iter()
        .any(|start| head.starts_with(start));
    if javascript {
        return Some(
            "it is JavaScript; a plugin is a WebAssembly component (`jco componentize` makes one of JavaScript)",
        );
    }
    Some("it is text, not WebAssembly")
}

/// What a directory is.
pub(super) fn directory(path: &std::path::Path) -> &'static str {
    if path.join("package.json").exists() {
        "it is the folder of an npm package, and npm packages are not components; give a .wasm file"
    } else if path.join("Cargo.toml").exists() {
        "it is the folder of a Rust crate; build it and give the .wasm file that it makes"
    } else {
        "it is a folder; give the .wasm file in it"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrong_file_is_told_what_it_is() {
        let mut tar = vec![0; 512];
        tar[..5].copy_from_slice(b"a.txt");
        tar[257..262].copy_from_slice(b"ustar");
        let table: &[(&[u8], &str)] = &[
            (b"", "empty"),
            (b"\x7fELF\x02\x01\x01", "native program"),
            (b"\x7fELF\x02\x01\x01......wasmtime.engine", ".cwasm"),
            (b"MZ\x90\0", "Windows"),
            (b"\xcf\xfa\xed\xfe", "macOS"),
            (b"PK\x03\x04...", "zip"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"\x28\xb5\x2f\xfd", "compressed"),
            (&tar, "tar archive"),
            (b"\0asm\x02\0\0\0", "another version"),
            (b"<!DOCTYPE html><title>404", "web page"),
            (b"(component (core module))", "WebAssembly text"),
            (b"  (module)", "WebAssembly text"),
            (b"untrusted comment: signature", "minisign"),
            (b"{\"name\": \"x\", \"version\": \"1\"}", "npm package"),
            (b"import { x } from 'y';", "JavaScript"),
            (b"module.exports = {}", "JavaScript"),
            (b"hello", "text"),
            ("häl".as_bytes(), "text"),
        ];
        for (bytes, part) in table {
            let says = told(bytes).unwrap_or_else(|| panic!("{bytes:?}"));
            assert!(says.contains(part), "{bytes:?}: {says}");
        }
    }

    #[test]
    fn of_webassembly_and_of_noise_nothing_is_told() {
        for bytes in [
            &b"\0asm\x01\0\0\0"[..],
            b"\0asm\x0d\0\x01\0..",
            b"\xff\xfe\x80\x81\x82\x83",
        ] {
            assert_eq!(told(bytes), None, "{bytes:?}");
        }
    }
}
