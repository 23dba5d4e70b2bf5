#!/usr/bin/env python3
"""Makes the keys and signatures beside it, as minisign does, from fixed seeds.

Run it in its own directory; needs `cryptography`. The keys guard nothing.
"""
import base64, hashlib
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def key(seed, ident):
    private = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(seed).digest())
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return private, ident, public


def pub(name, k):
    _, ident, public = k
    line = base64.b64encode(b"Ed" + ident + public).decode()
    number = "%016X" % int.from_bytes(ident, "little")
    open(name, "w").write(f"untrusted comment: minisign public key {number}\n{line}\n")


def sign(name, k, data, comment, prehashed=True):
    private, ident, _ = k
    message = hashlib.blake2b(data).digest() if prehashed else data
    signature = private.sign(message)
    overall = private.sign(signature + comment.encode())
    first = base64.b64encode((b"ED" if prehashed else b"Ed") + ident + signature).decode()
    open(name, "w").write(
        "untrusted comment: signature from minisign secret key\n"
        f"{first}\ntrusted comment: {comment}\n{base64.b64encode(overall).decode()}\n"
    )


DATA = b"what was signed\n"
open("data", "wb").write(DATA)
one = key(b"one", bytes.fromhex("0102030405060708"))
two = key(b"two", bytes.fromhex("1112131415161718"))
# Another key under the first one's id.
twin = key(b"twin", bytes.fromhex("0102030405060708"))
for name, k in (("one", one), ("two", two), ("twin", twin)):
    pub(f"{name}.pub", k)
    sign(f"data.{name}.minisig", k, DATA, f"timestamp:1700000000\tfile:data\tby {name}")
sign("data.legacy.minisig", one, DATA, "timestamp:1700000000\tfile:data", prehashed=False)
