"""How a fleet's settings are read: who may come in where. Passwords come from files or the environment only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nephila.engines.secrets import find_secret
from nephila.engines.tls import client_context
from nephila.engines.valkey_servers import PASSWORD_VARIABLE, ValkeyServers, servers_of
from nephila.model.errors import UsageError
from nephila.model.settings import Settings

from .registry import check_crawl_name


def check_fleet(settings: Settings) -> str:
    """The name of the crawl, once the settings say all that a fleet needs; raises `UsageError`."""
    for key, value, example in (
        ("fleet.crawl", settings.fleet.crawl, '"web"'),
        ("fleet.servers", settings.fleet.servers, '["redis://HOST:6379"]'),
        ("catalogue.url", settings.catalogue.url, '"postgresql://USER@HOST/DATABASE"'),
        ("archive.url", settings.archive.url, '"s3://bucket/prefix"'),
    ):
        if not value:
            group, name = key.split(".")
            raise UsageError(
                f"{key} is not set, and a fleet needs it",
                f"write it into the file that --config names: [{group}] {name} = {example}",
            )
    return check_crawl_name(settings.fleet.crawl)


def valkey_servers(settings: Settings, environ: Mapping[str, str]) -> ValkeyServers:
    """The way to the servers of the frontier."""
    fleet = settings.fleet
    named = servers_of(fleet.servers, {})
    context = client_context(fleet.authorities, verify=fleet.tls == "verified") if named.tls is not None else None
    password = find_secret(fleet.password_file, environ, (PASSWORD_VARIABLE,), "fleet.password_file")
    return replace(named, user=fleet.username, password=password.reveal(), tls=context)
