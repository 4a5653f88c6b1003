"""Where a PostgreSQL server is, who we are there, and how the line is secured.

The password comes from the file that a setting names, else from `PGPASSWORD`, else from the user's own password file
(`PGPASSFILE`, `~/.pgpass`), which the client library reads by itself. TLS: `auto` verifies the server's certificate and
name, except on this machine (a socket, loopback), where nothing is encrypted.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

from nephila.model.errors import UsageError
from nephila.model.settings import CatalogueSettings

from .secrets import Secret, find_secret, split_address
from .tls import context_for

SETTING = "catalogue.url"
SCHEMES = ("postgresql", "postgres")
USUAL_PORT = 5432


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """All that a connection needs to be made."""

    host: str
    """A name, an address, or the directory of a socket."""
    port: int
    user: str
    database: str
    password: Secret
    tls: ssl.SSLContext | None

    def arguments(self) -> dict[str, Any]:
        """As the client library takes them."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "database": self.database,
            "password": self.password.reveal() or None,
            "ssl": self.tls if self.tls is not None else False,
        }

    @classmethod
    def of(cls, settings: CatalogueSettings, environ: Mapping[str, str]) -> PostgresAddress:
        """From the settings; raises `UsageError` with a sentence."""
        parts = split_address(settings.url, SCHEMES, SETTING)
        query = parse_qs(parts.query)
        if unknown := sorted(query.keys() - {"host"}):
            raise UsageError(
                f"{SETTING} has the parameter {unknown[0]!r}, which is not known",
                hint="what can be set about the connection is set under [catalogue]",
            )
        host = query["host"][-1] if "host" in query else (parts.hostname or "localhost")
        database = unquote(parts.path.removeprefix("/"))
        user = unquote(parts.username or "") or environ.get("PGUSER", "")
        if not database or "/" in database or not user:
            missing = "user" if database and not user else "database"
            raise UsageError(f"{SETTING} names no {missing}", hint="write postgresql://USER@HOST:PORT/DATABASE")
        return cls(
            host,
            parts.port or USUAL_PORT,
            user,
            database,
            find_secret(settings.password_file, environ, ("PGPASSWORD",), "catalogue.password_file"),
            context_for(settings.tls, settings.authorities, host),
        )

    def __str__(self) -> str:
        place = self.host if self.host.startswith("/") else f"{self.host}:{self.port}"
        return f"{self.database} at {place}"
