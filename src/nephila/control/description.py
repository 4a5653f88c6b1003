"""The OpenAPI description, made from the declarations that the router reads: so it is true."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from nephila import VERSION

from .access import Role
from .endpoint import Endpoint
from .given import HealthAnswer, Problem
from .problems import MEDIA_TYPE, TITLES

PREFIX = "/api/v1"
ALWAYS = (400, 403, 421, 422, 429, 503)
"""What every endpoint may answer; 401 as well where tokens are wanted."""
WITH_BODY = (411, 413, 415)
_PARAMETER = re.compile(r"\{(\w+)\}")
_PARAMETERS = {
    "domain": "A domain, a host or a URL's host: the registrable domain that it belongs to is meant.",
    "task_id": "What tasks/lease gave.",
    "takedown_id": "What POST takedowns gave.",
}


def describe(endpoints: Iterable[Endpoint], *, tokens: bool) -> dict[str, Any]:
    """The whole description. `tokens`: whether requests must bear one."""
    endpoints = list(endpoints)
    answers = [endpoint.answer for endpoint in endpoints]
    bodies = [endpoint.body for endpoint in endpoints if endpoint.body is not None]
    _, components = msgspec.json.schema_components(
        [*answers, *bodies, Problem, HealthAnswer], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, tokens=tokens)
        paths.setdefault(PREFIX + endpoint.path, {})[endpoint.method.lower()] = operation
    paths[f"{PREFIX}/events"] = {"get": _events(tokens=tokens)}
    paths[f"{PREFIX}/openapi.json"] = {
        "get": _plain_get("getDescription", "This description", "application/json", {"type": "object"}, tokens=tokens)
    }
    paths["/metrics"] = {
        "get": _plain_get("getMetrics", "Figures for Prometheus", "text/plain", {"type": "string"}, tokens=tokens)
    }
    health = {"$ref": "#/components/schemas/HealthAnswer"}
    alive = _plain_get("healthz", "That it answers", "application/json", health, tokens=False)
    paths["/healthz"] = {"get": {**alive, "security": []} if tokens else alive}
    paths["/readyz"] = {
        "get": _plain_get("readyz", "That the crawl can be asked", "application/json", health, tokens=tokens)
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Nephila control API",
            "version": VERSION,
            "description": "A crawl seen and operated over HTTP. Instants (`*_at`, `at`) are UTC milliseconds.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components},
    }
    if tokens:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _operation(endpoint: Endpoint, *, tokens: bool) -> dict[str, Any]:
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARAMETERS[name],
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^/]+$"},
        }
        for name in _PARAMETER.findall(endpoint.path)
    ]
    if endpoint.query is not None:
        parameters += _query_parameters(endpoint.query)
    problems = {*ALWAYS, *endpoint.problems}
    problems |= {*WITH_BODY} if endpoint.body is not None else set()
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": parameters,
        "responses": {
            str(endpoint.status): {
                "description": (endpoint.answer.__doc__ or "").strip().splitlines()[0],
                "content": {"application/json": {"schema": _ref(endpoint.answer)}},
            },
            **_problems(problems, tokens=tokens),
        },
    }
    if endpoint.role is Role.WRITE:
        operation["x-role"] = "write"
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _ref(endpoint.body)}},
        }
    return operation


def _query_parameters(query: type) -> list[dict[str, Any]]:
    schema = _inlined(query)
    required = set(schema.get("required", ()))
    found = []
    for name, value in schema["properties"].items():
        described = dict(value)
        text = described.pop("description", "")
        parameter: dict[str, Any] = {"name": name, "in": "query", "required": name in required, "schema": described}
        if text:
            parameter["description"] = text
        found.append(parameter)
    return found


def _inlined(query: type) -> dict[str, Any]:
    (schema,), components = msgspec.json.schema_components([query], ref_template="{name}")
    found: dict[str, Any] = components[schema["$ref"]]
    return found


def _events(*, tokens: bool) -> dict[str, Any]:
    from .asked import EventsAsked  # noqa: PLC0415 - the only one without an endpoint

    operation = _plain_get(
        "streamEvents",
        "Events as they happen (server-sent events; docs/events.md)",
        "text/event-stream",
        {
            "type": "object",
            "description": "Each event: its name, the line of JSON as it was written, and its place in the files.",
            "properties": {"event": {"type": "string"}, "data": {"type": "string"}, "id": {"type": "string"}},
        },
        tokens=tokens,
    )
    operation["parameters"] = _query_parameters(EventsAsked)
    return operation


def _plain_get(name: str, summary: str, media: str, schema: dict[str, Any], *, tokens: bool) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "tags": ["sight"],
        "parameters": [],
        "responses": {
            "200": {"description": summary, "content": {media: {"schema": schema}}},
            **_problems({*ALWAYS}, tokens=tokens),
        },
    }


def _problems(statuses: set[int], *, tokens: bool) -> dict[str, Any]:
    return {
        str(status): {"description": TITLES[status][1], "content": {MEDIA_TYPE: {"schema": _ref(Problem)}}}
        for status in sorted(statuses | ({401} if tokens else set()))
    }


def _ref(shape: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{shape.__name__}"}
