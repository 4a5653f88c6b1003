"""Nothing leaves a browser by itself, whatever a page tries (J3, H6). In a network namespace with bait."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from baited_pages import BAITS, DATAGRAM_PORTS, STREAM_PORTS
from browser import chromium
from namespace import run_alone

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    folder = tmp_path_factory.mktemp("seclusion")
    result = run_alone([SUPPORT / "baited_pages.py", folder, chromium()], timeout=240)
    assert result.returncode == 0, result.stderr
    told: dict[str, Any] = json.loads((folder / "evidence.json").read_text())
    return told


def test_the_listeners_would_have_told(evidence: Mapping[str, Any]) -> None:
    """J3: each bait was reached when it was knocked at, some by a page in an open browser."""
    assert evidence["open"]["arrived"], "a page that nothing is kept from gets out"
    assert len(evidence["knocked"]) == len(BAITS) * (len(STREAM_PORTS) + len(DATAGRAM_PORTS))


@pytest.mark.parametrize("way", ["secluded", "flags"])
def test_nothing_leaves_a_browser_by_itself(evidence: Mapping[str, Any], way: str) -> None:
    """J3, H6: neither connections nor datagrams, in a namespace of its own and, without one, by its flags alone."""
    told = evidence[way]
    assert told["arrived"] == {}
    assert told["titles"] == ["Tried"] * len(BAITS), "its scripts ran to the end"


@pytest.mark.parametrize("way", ["secluded", "flags"])
def test_what_a_page_asks_for_comes_to_us(evidence: Mapping[str, Any], way: str) -> None:
    """J3: scripts, data and frames are asked of our own side, each for every bait, and so is what a worker wants."""
    asked = evidence[way]["asked"]
    for path in ("/script.js", "/fetch", "/frame"):
        assert len([one for one in asked if one["url"].endswith(path)]) >= len(BAITS), path
    assert any(one["method"] == "POST" for one in asked)
