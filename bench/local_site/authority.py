"""An authority of the bench's own, made by openssl: root, intermediate, and a leaf shaped as those of the web are."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import certifi

KEYS = {
    "P-256": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "RSA 2048": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
}
_AUTHORITY = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n"
_LEAF = """basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
authorityInfoAccess=OCSP;URI:http://ocsp.{name}/,caIssuers;URI:http://issuer.{name}/r1.der
crlDistributionPoints=URI:http://crl.{name}/r1.crl
certificatePolicies=2.23.140.1.2.1
subjectAltName={names}
"""


@dataclass(frozen=True, slots=True)
class Chain:
    """PEM files."""

    root: Path
    intermediate: Path
    key: Path
    shown: Path
    """Leaf and intermediate: what a server sends."""


def made(kind: str, name: str, folder: Path, addresses: Sequence[str] = ()) -> Chain:
    """A chain for a name and nine others, or for addresses, with keys of a kind."""
    if shutil.which("openssl") is None:
        raise SystemExit("TLS rows need the command openssl, which is not installed.")
    place = folder / re.sub(r"\W", "", kind)
    place.mkdir()
    named = [f"DNS:{one}" for one in [name, *(f"www{number}.{name}" for number in range(9))]]
    names = ",".join([f"IP:{address}" for address in addresses] or named)
    root = _issue(place, kind, "root", _AUTHORITY, signer=None)
    middle = _issue(place, kind, "intermediate", _AUTHORITY + "authorityKeyIdentifier=keyid\n", signer="root")
    leaf = _issue(place, kind, "leaf", _LEAF.format(name=name, names=names), signer="intermediate")
    shown = place / "shown.pem"
    shown.write_text(leaf.read_text() + middle.read_text())
    return Chain(root, middle, place / "leaf.key", shown)


def _issue(place: Path, kind: str, role: str, extensions: str, *, signer: str | None) -> Path:
    key, request, certificate, written = (place / f"{role}.{end}" for end in ("key", "csr", "pem", "ext"))
    written.write_text(extensions)
    _openssl("genpkey", *KEYS[kind], "-out", key)
    _openssl("req", "-new", "-key", key, "-subj", f"/O=Bench/CN=bench {role} {kind}", "-out", request)
    by = ("-CA", place / f"{signer}.pem", "-CAkey", place / f"{signer}.key", "-CAcreateserial")
    signing = by if signer else ("-signkey", key)
    _openssl(
        "x509", "-req", "-in", request, *signing, "-days", "2", "-sha256", "-extfile", written, "-out", certificate
    )
    return certificate


def hashed_directory(chain: Chain, folder: Path) -> Path:
    """The usual authorities and the root, a file each under the names that OpenSSL looks for."""
    place = folder / f"store-{chain.root.parent.name}"
    place.mkdir()
    found = re.findall(
        r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----", Path(certifi.where()).read_text("utf-8")
    )
    for number, text in enumerate([*found, chain.root.read_text()]):
        (place / f"{number}.pem").write_text(text + "\n")
    _openssl("rehash", place)
    return place


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"openssl {words[0]} failed: {done.stderr.strip()[-300:]}")
