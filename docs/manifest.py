#!/usr/bin/env python3
"""Gives a WebAssembly component its manifest: plugin.toml, as JSON, in the custom section `dsh:manifest`.

    python3 manifest.py plugin.toml component.wasm out.wasm

Works on a core module with a component-type section too. `config.schema` may name a JSON file beside plugin.toml.
"""
import json
import pathlib
import sys
import tomllib


def leb128(number):
    out = b""
    while True:
        byte, number = number & 0x7F, number >> 7
        if not number:
            return out + bytes([byte])
        out += bytes([byte | 0x80])


def read(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def main(toml, wasm, out):
    manifest = tomllib.loads(pathlib.Path(toml).read_text("utf-8"))
    schema = manifest.get("config", {}).get("schema")
    if isinstance(schema, str):
        manifest["config"]["schema"] = json.loads((pathlib.Path(toml).parent / schema).read_text("utf-8"))
    data = pathlib.Path(wasm).read_bytes()
    name = b"dsh:manifest"
    kept, at = data[:8], 8
    while at < len(data):
        size, body = read(data, at + 1)
        length, text = read(data, body)
        if not (data[at] == 0 and data[text : text + length] == name):
            kept += data[at : body + size]
        at = body + size
    body = leb128(len(name)) + name + json.dumps(manifest, ensure_ascii=False).encode()
    pathlib.Path(out).write_bytes(kept + b"\0" + leb128(len(body)) + body)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
