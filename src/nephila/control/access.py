"""Who may do what (C2).

Without a token the API is for this machine only: it binds a loopback address, and since a page in somebody's browser
can reach that, too, it answers only under a name of this machine (no DNS rebinding) and refuses what comes from another
site's page. Changes are never simple requests in a browser's sense: they carry JSON or use another method than GET and
POST, and no cross-origin permission is ever given.

With tokens every request must bear one. Tokens come from a file or from the environment, never from the command line,
where every user of the machine could read them. They are kept as digests and compared in constant time, all of them for
every request.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from nephila.model.errors import UsageError

from .problems import ProblemError

WRITE_TOKEN, READ_TOKEN = "NEPHILA_API_TOKEN", "NEPHILA_API_READ_TOKEN"
LEAST_LENGTH = 16
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/]+)(?::[0-9]{0,5})?")
_PROXY_HINT = "a proxy in front of the API must pass the Host header on"
_LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


class Role(StrEnum):
    """What a caller may do; who may write may read."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Token:
    """Whoever bears it is `name`."""

    name: str
    role: Role
    digest: bytes


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    name: str
    role: Role


LOOPBACK = Caller("loopback", Role.WRITE)


def digest_of(secret: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(secret.encode()).digest()


def read_tokens(file: Path | None, environ: Mapping[str, str]) -> tuple[Token, ...]:
    """The tokens of a file and of the environment; UsageError where one makes no sense."""
    found: list[Token] = []
    for variable, role in ((WRITE_TOKEN, Role.WRITE), (READ_TOKEN, Role.READ)):
        if secret := environ.get(variable, ""):
            found.append(_token(f"environment-{role}", role, secret, variable))
    if file is not None:
        found += _from_file(file)
    return tuple(found)


def _from_file(file: Path) -> Iterable[Token]:
    """One token a line: NAME ROLE TOKEN. Empty lines and those that begin with # say nothing."""
    try:
        if stat.S_IMODE(file.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(f"{file} can be read by others", f"keep tokens to yourself: chmod 600 {file}")
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"the file of tokens {file} cannot be read: {told}") from error
    found: list[Token] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{file}:{number}"
        if len(words) != 3 or not _NAME.fullmatch(words[0]) or words[1] not in set(Role):
            raise UsageError(f"{where} is no token", "write a line as NAME read|write TOKEN")
        found.append(_token(words[0], Role(words[1]), words[2], where))
    if not found:
        raise UsageError(f"there is no token in {file}", "write a line as NAME read|write TOKEN")
    return found


def _token(name: str, role: Role, secret: str, where: str) -> Token:
    if len(secret) < LEAST_LENGTH or not secret.isascii() or not secret.isprintable() or " " in secret:
        hint = f"take at least {LEAST_LENGTH} random characters, for instance of: openssl rand -hex 32"
        raise UsageError(f"the token of {where} is too short or has unusual characters", hint)
    return Token(name, role, digest_of(secret))


def check_binding(host: str, tokens: tuple[Token, ...]) -> None:
    """UsageError where an address would be bound that others can reach, and anybody could ask."""
    if not tokens and not is_loopback(host):
        raise UsageError(
            f"without a token only this machine may ask, and {host!r} is not its loopback address",
            f"give --token-file FILE or set {WRITE_TOKEN}, or serve on 127.0.0.1",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address. A name counts only where it can mean nothing else."""
    if host.lower() in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Gate:
    """Lets a request in, or not."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self._tokens = tokens

    @property
    def wants_token(self) -> bool:
        """Whether every request must bear one."""
        return bool(self._tokens)

    def admit(self, headers: Mapping[str, str], role: Role) -> Caller:
        """Who asks; `ProblemError` for who may not."""
        self.check_name(headers)
        self._check_origin(headers)
        caller = self._caller(headers.get("authorization", "")) if self._tokens else LOOPBACK
        if role is Role.WRITE and caller.role is not Role.WRITE:
            raise ProblemError(403, f"the token {caller.name} may read only")
        return caller

    def _caller(self, given: str) -> Caller:
        scheme, _, secret = given.partition(" ")
        digest = digest_of(secret.strip())
        found: Token | None = None
        for token in self._tokens:  # all of them, whichever it is: the time must not tell
            if hmac.compare_digest(token.digest, digest):
                found = token
        if found is None or scheme.lower() != "bearer":
            hint = "send the header Authorization: Bearer TOKEN"
            raise ProblemError(401, "a token is missing or wrong", hint, {"WWW-Authenticate": 'Bearer realm="nephila"'})
        return Caller(found.name, found.role)

    def check_name(self, headers: Mapping[str, str]) -> None:
        """Without a token, only names that mean this machine: another name was made to lead here."""
        host = headers.get("host", "")
        if not self._tokens and not is_loopback(_without_port(host)):
            raise ProblemError(421, f"{host!r} is no name of this machine", "ask http://127.0.0.1 with the same port")

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        """Nothing is done for the page of another site."""
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower():
            raise ProblemError(403, "requests from pages of another site are refused", _PROXY_HINT)
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
            raise ProblemError(403, "requests from pages of another site are refused")


def _without_port(host: str) -> str:
    """The name or address in a Host header; empty where that is no such header."""
    found = _HOST.fullmatch(host)
    return found[1] if found else ""
