"""Credentials, from where S3 tools look for them: the environment, files, the container, the machine.

In this order, the first that has any: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`; the profile (`AWS_PROFILE`, else
`default`) in ~/.aws/credentials and ~/.aws/config; the address that a container is told; the instance's own service
(IMDSv2), unless `AWS_EC2_METADATA_DISABLED` says no. What expires is asked for again five minutes before it does, and
used to its end where nobody answers.

They are held in memory and nowhere else: no setting has them, no message names them, and a `Credentials` that is
printed shows nothing.
"""

from __future__ import annotations

import configparser
import http.client
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from nephila.model.errors import StoreRefusedError

RENEW_BEFORE_MS = 300_000
ASK_S = 2.0
"""For an answer of the machine's own service: it is next door, or not there."""

INSTANCE = "http://169.254.169.254"
CONTAINER = "http://169.254.170.2"
_ROLE_PATH = "/latest/meta-data/iam/security-credentials/"
_MAX_ANSWER = 1 << 16


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """A key with its secret. Has no `repr`: what is printed by accident tells nothing."""

    key: str
    secret: str
    token: str = ""
    expires_at: int | None = None
    """UTC milliseconds."""


class CredentialChain:
    """Finds credentials, and keeps them while they are good. May be used from several threads."""

    def __init__(self, environ: Mapping[str, str], now_ms: Callable[[], int], home: Path | None = None) -> None:
        self._environ = environ
        self._now_ms = now_ms
        self._home = home or Path(environ.get("HOME", "/nonexistent"))
        self._lock = threading.Lock()
        self._found: Credentials | None = None

    def current(self) -> Credentials:
        """Credentials that are good now; raises `StoreRefusedError` where there are none."""
        with self._lock:
            found, now_ms = self._found, self._now_ms()
            if found is None:
                found = self._found = self._find()
            elif (end := found.expires_at) is not None and end - RENEW_BEFORE_MS < now_ms:
                try:
                    found = self._found = self._find()
                except StoreRefusedError:
                    if end <= now_ms:
                        raise
            return found

    def forget(self) -> None:
        """Look anew at the next call: those that are held were refused."""
        with self._lock:
            self._found = None

    def _find(self) -> Credentials:
        for source in (self._from_environment, self._from_files, self._from_container, self._from_instance):
            if (found := source()) is not None:
                return found
        raise StoreRefusedError(
            "there are no credentials for the archive's store",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for a profile of ~/.aws/credentials",
        )

    def _from_environment(self) -> Credentials | None:
        key, secret = self._environ.get("AWS_ACCESS_KEY_ID", ""), self._environ.get("AWS_SECRET_ACCESS_KEY", "")
        if not key or not secret:
            return None
        return Credentials(key, secret, self._environ.get("AWS_SESSION_TOKEN", ""))

    def _from_files(self) -> Credentials | None:
        profile = self._environ.get("AWS_PROFILE", "")
        folder = self._home / ".aws"
        places = (
            (self._environ.get("AWS_SHARED_CREDENTIALS_FILE", ""), folder / "credentials", profile or "default"),
            (
                self._environ.get("AWS_CONFIG_FILE", ""),
                folder / "config",
                f"profile {profile}" if profile and profile != "default" else "default",
            ),
        )
        for named, usual, section in places:
            found = _of_profile(Path(named) if named else usual, section)
            if found is not None:
                return found
        if profile:
            raise StoreRefusedError(
                f"the profile {profile!r} (AWS_PROFILE) has no key in ~/.aws/credentials",
                hint="name one that has, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        return None

    def _from_container(self) -> Credentials | None:
        relative = self._environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "")
        url = CONTAINER + relative if relative else self._environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")
        if not url:
            return None
        token = self._environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
        if file := self._environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", ""):
            token = _text(Path(file)).strip()
        return _of_answer(_asked("GET", url, {"Authorization": token} if token else {}))

    def _from_instance(self) -> Credentials | None:
        if self._environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            return None
        base = self._environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", INSTANCE).rstrip("/")
        token = _asked("PUT", f"{base}/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
        if not token:
            return None
        headers = {"X-aws-ec2-metadata-token": token}
        role = _asked("GET", base + _ROLE_PATH, headers).partition("\n")[0].strip()
        return _of_answer(_asked("GET", base + _ROLE_PATH + role, headers)) if role else None


def _of_profile(path: Path, section: str) -> Credentials | None:
    text = _text(path)
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise StoreRefusedError(f"{path} cannot be read as a file of credentials", hint="mend it") from error
    if not parser.has_section(section):
        return None
    key = parser.get(section, "aws_access_key_id", fallback="")
    secret = parser.get(section, "aws_secret_access_key", fallback="")
    if not key or not secret:
        return None
    return Credentials(key, secret, parser.get(section, "aws_session_token", fallback=""))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # no file, no credentials: the next place is looked at


def _asked(method: str, url: str, headers: Mapping[str, str]) -> str:
    """What a service of the machine answers; nothing where it does not, or answers with no."""
    parts = urlsplit(url)
    if parts.hostname is None:
        return ""
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=ASK_S)
    try:
        connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), headers=dict(headers))
        answer = connection.getresponse()
        body = answer.read(_MAX_ANSWER)
        return body.decode("utf-8", "replace") if answer.status == 200 else ""
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()


def _of_answer(text: str) -> Credentials | None:
    """From the JSON that containers and instances are given."""
    try:
        fields = json.loads(text)
        expiration = fields.get("Expiration")
        expires_at = None
        if expiration:
            expires_at = int(datetime.fromisoformat(expiration).timestamp() * 1000)
        return Credentials(fields["AccessKeyId"], fields["SecretAccessKey"], fields.get("Token") or "", expires_at)
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
