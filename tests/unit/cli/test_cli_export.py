from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nephila.cli.backend import Backend
from nephila.cli.main import cli
from nephila.cli.progress import ProgressLine
from nephila.export import Include, LeftOut, Use
from nephila.node.exporting import Exported, ExportOrder, Form, Looked, View


@dataclass
class FakeExport:
    """Notes what is ordered."""

    orders: list[ExportOrder] = field(default_factory=list)
    result: Exported = field(default_factory=Exported)
    raises: BaseException | None = None

    def __call__(self, _crawl: Any, order: ExportOrder, tell: Callable[[Looked], None]) -> Exported:
        tell(Looked(1, 2, 1))
        self.orders.append(order)
        if self.raises is not None:
            raise self.raises
        return self.result


@pytest.fixture
def exports() -> FakeExport:
    return FakeExport()


@pytest.fixture
def invoke(exports: FakeExport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    backend = replace(Backend(), export=exports)

    def run(*args: str) -> Result:
        return CliRunner().invoke(cli, ["export", "d", *args], obj=backend)

    return run


@pytest.mark.parametrize(
    ("flags", "form", "statuses", "types", "view", "bodies"),
    [
        (("--to", "x.jsonl"), Form.JSONL, {200}, (), View.RENDERED, True),
        (("--to", "x.jsonl.gz"), Form.JSONL, {200}, (), View.RENDERED, True),
        (("--to", "x.parquet"), Form.PARQUET, {200}, (), View.RENDERED, True),
        (("--to", "x.wacz"), Form.WACZ, set(), (), View.RENDERED, False),
        (("--to", "x", "--format", "html"), Form.HTML, {200}, ("text/html", "application/xhtml+xml"), View.RAW, True),
        (("--to", "x", "--format", "text", "--type", "text/*"), Form.TEXT, {200}, ("text/*",), View.RENDERED, True),
        (("--to", "x.parquet", "--format", "links"), Form.LINKS, {200}, (), View.RENDERED, False),
        (("--to", "-"), Form.JSONL, {200}, (), View.RENDERED, True),
    ],
)
def test_every_form_has_its_defaults(
    invoke: Callable[..., Result],
    exports: FakeExport,
    flags: tuple[str, ...],
    form: Form,
    statuses: set[int],
    types: tuple[str, ...],
    view: View,
    bodies: bool,
) -> None:
    """W6: the name of the file tells the form; replay wants every status, files are of HTML."""
    assert invoke(*flags).exit_code == 0
    [order] = exports.orders
    assert (order.form, order.view, order.selection.types) == (form, view, types)
    assert (order.selection.statuses, order.selection.bodies) == (statuses, bodies)
    assert order.selection.newest


def test_what_is_asked_for_is_handed_on(invoke: Callable[..., Result], exports: FakeExport) -> None:
    """W6, K3: every flag."""
    flags = (
        "--host",
        "A.example.",
        "--domain",
        "B\u00fc.example",
        "--status",
        "404",
        "--type",
        "Text/HTML",
        "--limit",
        "7",
    )
    more = ("--since", "2026-01-31", "--until", "2026-02-01T12:00:00+01:00", "--all", "--unique", "--view", "raw")
    kept = ("--include", "noindex", "--include", "truncated", "--use", "ai-train")
    assert invoke("--to", "x.jsonl", *flags, *more, *kept).exit_code == 0
    [order] = exports.orders
    chosen = order.selection
    assert (chosen.hosts, chosen.domains) == ({"a.example"}, {"xn--b-eha.example"})
    assert (chosen.statuses, chosen.types, order.limit) == ({404}, ("text/html",), 7)
    assert (chosen.since, chosen.until) == (1_769_817_600_000, 1_769_943_600_000)
    assert (chosen.newest, chosen.unique, order.view) == (False, True, View.RAW)
    assert chosen.include == {Include.NOINDEX, Include.TRUNCATED}
    assert chosen.use == {Use.AI_TRAIN}


def test_the_summary_says_what_was_left_out_and_why(invoke: Callable[..., Result], exports: FakeExport) -> None:
    """W6, C4: by reason, within 80 columns; what is damaged is told, and the exit code is 1."""
    exports.result = Exported(captures=10, pages=1, damage=["a.warc.gz is \x1b[2J damaged"])
    exports.result.left_out.update({LeftOut.NOINDEX: 6, LeftOut.DAMAGED: 3})
    result = invoke("--to", "x.jsonl")
    assert result.exit_code == 1
    assert result.stdout.startswith(
        "1 page in x.jsonl, of 10 captures that were looked at.\nLeft out: 9\n    6  noindex"
    )
    assert "\x1b" not in result.output
    document = json.loads(invoke("--to", "x.jsonl", "--json").stdout)
    assert document["left_out"] == {"noindex": 6, "damaged": 3}
    assert (document["exported"], document["captures"], document["format"]) == (1, 10, "jsonl")


def test_ctrl_c_is_told(invoke: Callable[..., Result], exports: FakeExport) -> None:
    """W6, C4: and that nothing was written."""
    exports.raises = KeyboardInterrupt()
    result = invoke("--to", "x.jsonl")
    assert result.exit_code != 0
    assert "Interrupted: nothing was written." in result.stderr


def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """C4: one line that is gone at the end; nothing in a pipe."""
    with ProgressLine() as line:
        line.show("7 %")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressLine() as line:
        line.show("7 %\x1b[2J")
        line.show("8 %")
    assert capsys.readouterr().err == "\r\x1b[K7 %\N{REPLACEMENT CHARACTER}[2J\r\x1b[K"
