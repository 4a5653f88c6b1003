"""The report of a crawl as one HTML file: no script, nothing loaded from anywhere, light and dark, fit for printing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING

from .charts import Row, area, bars, table
from .explanations import ERRORS, PARKED, WAITS
from .figures import clock, count, moment, rate, size
from .naming import command_name

if TYPE_CHECKING:
    from nephila.report import CrawlReport, Spread

_Write = Callable[[int], str]

LISTED = 12
"""Rows of a chart before the rest is summed up."""

_STYLE = """
:root{color-scheme:light dark;--back:#f7f6f3;--card:#fff;--ink:#1d1f24;--soft:#667;--line:#e3e1db;--mark:#a8620b;
--bar:#d9922e;--bad:#b3352b}
@media (prefers-color-scheme:dark){:root{--back:#15171b;--card:#1e2127;--ink:#e8e6e1;--soft:#9aa0ac;--line:#30343c;
--mark:#f0b35c;--bar:#c98a35;--bad:#e5776c}}
*{box-sizing:border-box}
body{margin:0;padding:2rem clamp(1rem,4vw,3rem);background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:76rem;margin:auto}
h1{font-size:1.6rem;margin:0 0 .2rem;overflow-wrap:anywhere}
h2{font-size:1rem;margin:0 0 .8rem}
.lead{color:var(--soft);margin:0 0 1.6rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:1rem;margin:0 0 1rem}
.figures div,section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1rem 1.1rem}
.figures dt{color:var(--soft);font-size:.85rem}
.figures dd{margin:0;font-size:1.5rem;font-variant-numeric:tabular-nums}
.figures small{display:block;color:var(--soft);font-size:.8rem}
.grid2{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1rem;margin:1rem 0}
section{margin:0;min-width:0}
section.all{grid-column:1/-1}
.note{color:var(--soft);font-size:.85rem;margin:.6rem 0 0}
.none{color:var(--soft);margin:0}
.chart{width:100%;height:auto;display:block}
.chart .area{fill:var(--bar);stroke:none}
.bad .area{fill:var(--bad)}
.chart .grid{stroke:var(--line)}
.chart .scale{fill:var(--soft);font-size:11px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
.bars th{font-weight:400;text-align:left;padding:.15rem .8rem .15rem 0;white-space:nowrap;max-width:18rem;
overflow:hidden;text-overflow:ellipsis}
.bars td{white-space:nowrap;text-align:right}
.bars .bar{width:100%;padding:0 .8rem 0 0}
.bars .bar span{display:block;height:.7rem;min-width:2px;border-radius:3px;background:var(--bar)}
.bars.bad .bar span{background:var(--bad)}
.wide{overflow-x:auto}
.list th,.list td{padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
.list th{color:var(--soft);font-weight:400;font-size:.85rem}
.list .figure{text-align:right;white-space:nowrap}
.list td.word{overflow-wrap:anywhere;min-width:9rem}
footer{color:var(--soft);font-size:.85rem;margin-top:1.5rem}
@media print{body{background:#fff;padding:0}section,.figures div{break-inside:avoid}}
"""


def render(report: CrawlReport) -> str:
    """The whole file."""
    name = escape(_name(report.directory))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<meta name="referrer" content="no-referrer"><title>Crawl report: {name}</title>'
        f"<style>{_STYLE}</style></head><body><main>"
        f'<h1>{name}</h1><p class="lead">{escape(_lead(report))}</p>'
        f'<dl class="figures">{"".join(_figures(report))}</dl>'
        f'<div class="grid2">{"".join(_sections(report))}</div>'
        f"<footer>Made by {escape(command_name())} on {moment(report.made_at)} UTC. All times are UTC.</footer>"
        "</main></body></html>\n"
    )


def _name(directory: str) -> str:
    return directory.rstrip("/").rpartition("/")[2] or directory


def _lead(report: CrawlReport) -> str:
    state = "running" if report.running else "not running"
    if not report.timeline.moments:
        return f"{state}, cycle {report.cycle}; nothing was fetched yet"
    begun, ended = moment(report.timeline.begun_at), moment(report.ended_at)
    return f"{state}, cycle {report.cycle}; from {begun} to {ended} ({clock(report.seconds)})"


def _figures(report: CrawlReport) -> Iterator[str]:
    failed = sum(report.errors.values())
    again = report.repetition
    yield _figure("pages", count(report.pages), f"{count(report.answers)} answers")
    yield _figure("domains", count(report.coverage.domains), f"{count(report.hosts)} hosts known")
    yield _figure("pages a second", rate(report.pages_per_s), f"{rate(report.most_pages_per_s)} at best")
    yield _figure("on the wire", size(report.bytes), f"{size(report.sizes.total)} of pages, decoded")
    yield _figure("errors", count(failed), f"{report.error_share:.1%} of all exchanges")
    yield _figure("duplicates", count(again.exact + again.near), f"{count(again.near)} of them nearly the same")
    yield _figure(
        "median answer", f"{count(report.latencies.median)} ms", f"99 %: {count(report.latencies.ninety_ninth)} ms"
    )
    yield _figure("still queued", count(sum(report.queue.queued.values())), f"{count(report.queue.dead)} given up")


def _figure(name: str, figure: str, more: str) -> str:
    return f"<div><dt>{escape(name)}</dt><dd>{escape(figure)}<small>{escape(more)}</small></dd></div>"


def _sections(report: CrawlReport) -> Iterator[str]:
    timeline = report.timeline
    seconds = timeline.step_ms / 1000
    if timeline.moments:
        begun_at, step_ms = timeline.begun_at, timeline.step_ms
        pages = [one.pages / seconds for one in timeline.moments]
        yield _section("Pages a second", area(pages, begun_at, step_ms, _rate, "pages a second over time"), kind="all")
        flow = [one.bytes / seconds for one in timeline.moments]
        yield _section("Bytes a second", area(flow, begun_at, step_ms, _bytes, "bytes a second over time"))
        failed = [one.errors / seconds for one in timeline.moments]
        yield _section("Errors a second", area(failed, begun_at, step_ms, _rate, "errors over time"), kind="bad")
    yield _section("Answers by status", bars(_top({str(status): n for status, n in report.statuses.items()})))
    yield _section(
        "Errors by kind",
        bars(_top(report.errors), "bad"),
        "; ".join(f"{kind}: {ERRORS[kind]}" for kind in report.errors if kind in ERRORS),
    )
    yield _section(
        "Hosts with most errors",
        table(
            ("host", "kinds", "errors"),
            (
                (one.host, ", ".join(f"{kind} {count(n)}" for kind, n in one.kinds.items()), count(one.errors))
                for one in report.error_hosts
            ),
            words=2,
        ),
        kind="all",
    )
    yield _section(
        "Pages a domain", bars(_coverage(report.coverage.by_pages)), "Domains by how many pages they brought."
    )
    yield _section("Pages by depth", bars(_by_depth(report.depths)), "Links from a seed.")
    yield _section(
        "Domains with most pages",
        table(
            ("domain", "pages", "requests", "mean answer", "last"),
            (
                (one.domain, count(one.pages), count(one.requests), f"{one.mean_ms:,.0f} ms", moment(one.last_at))
                for one in report.coverage.leading
            ),
        ),
        kind="all",
    )
    yield _section("Sizes of pages", bars(_spread(report.sizes, size)), _percentiles(report.sizes, size))
    yield _section("Time of an answer", bars(_spread(report.latencies, _ms)), _percentiles(report.latencies, _ms))
    again = report.repetition
    repeated = {"the same bytes": again.exact, "nearly the same": again.near, "not changed since": again.unchanged}
    yield _section(
        "Nothing new",
        bars(_top(repeated)),
        f"Of {count(report.pages)} pages; {count(report.truncated)} answers were cut.",
    )
    yield _section("Pages by type", bars(_top(report.types)))
    yield _section("What is left", bars(_left(report)), _meanings(report))
    yield from _workers(report)
    yield _section(
        f"Traps ({count(report.traps_in_all)})",
        table(
            ("host", "pattern", "state", "fetched", "new", "held back"),
            (
                (
                    one.host,
                    one.pattern,
                    one.state,
                    count(one.fetched),
                    count(one.fresh),
                    count(one.parked) + "+" * one.parked_more,
                )
                for one in report.traps
            ),
            words=3,
        ),
        kind="all",
    )


def _workers(report: CrawlReport) -> Iterator[str]:
    """Of a fleet alone."""
    if report.workers:
        rows = (
            (
                one.name,
                one.state,
                count(one.pages),
                count(one.errors),
                rate(one.pages_per_s),
                size(one.waiting_bytes) if one.waiting_bytes else "-",
            )
            for one in report.workers
        )
        yield _section(
            "Workers",
            table(("worker", "state", "pages", "errors", "pages/s", "in its spool"), rows, words=2),
            "Those who are there now, and what each has done since it was started. What lies in a spool is in no other "
            "figure but the count of pages.",
            kind="all",
        )


def _section(title: str, body: str, note: str = "", *, kind: str = "") -> str:
    told = f'<p class="note">{escape(note)}</p>' if note else ""
    return f'<section class="{kind.strip()}"><h2>{escape(title)}</h2>{body}{told}</section>'


def _top(counts: Mapping[str, int]) -> list[Row]:
    """The largest first, a long tail summed up, nothing left out."""
    ordered = sorted(
        ((name, number) for name, number in counts.items() if number), key=lambda item: (-item[1], item[0])
    )
    rows: list[Row] = [(name, number, count(number)) for name, number in ordered[:LISTED]]
    if rest := ordered[LISTED:]:
        total = sum(number for _, number in rest)
        rows.append((f"{count(len(rest))} others", total, count(total)))
    return rows


def _coverage(by_pages: Mapping[int, int]) -> list[Row]:
    return [(decade(digits), domains, count(domains)) for digits, domains in sorted(by_pages.items())]


def decade(digits: int) -> str:
    """What a number of digits stands for: ``none``, ``1 to 9``, ``10 to 99``."""
    return f"{count(10 ** (digits - 1))} to {count(10**digits - 1)}" if digits else "none"


def _by_depth(depths: Mapping[int, int]) -> list[Row]:
    rows: list[Row] = [(str(depth), pages, count(pages)) for depth, pages in sorted(depths.items())[:LISTED]]
    if rest := sorted(depths.items())[LISTED:]:
        total = sum(pages for _, pages in rest)
        rows.append(("deeper", total, count(total)))
    return rows


def _spread(spread: Spread, write: _Write) -> list[Row]:
    return [
        (f"under {write(1 << bits)}" if bits else "nothing", number, count(number))
        for bits, number in spread.counts.items()
    ]


def _percentiles(spread: Spread, write: _Write) -> str:
    if not spread.count:
        return ""
    return (
        f"Half are at most {write(spread.median)}, nine in ten {write(spread.ninth)}, 99 in 100"
        f" {write(spread.ninety_ninth)}; the most is {write(spread.most)}."
    )


def _left(report: CrawlReport) -> list[Row]:
    queue = report.queue
    rows = [*((f"queued, {name}", n) for name, n in queue.queued.items())]
    rows += [(f"waiting: {name}", n) for name, n in queue.waiting.items()]
    rows += [(f"parked: {name}", n) for name, n in queue.parked.items()]
    rows.append(("given up", queue.dead))
    return [(name, number, count(number)) for name, number in rows if number]


def _meanings(report: CrawlReport) -> str:
    known = [f"{name}: {WAITS[name]}" for name, n in report.queue.waiting.items() if n and name in WAITS]
    known += [f"{name}: {PARKED[name]}" for name, n in report.queue.parked.items() if n and name in PARKED]
    return "; ".join(known)


def _rate(figure: float) -> str:
    return f"{figure:,.3g}" if figure < 1000 else f"{figure:,.0f}"


def _bytes(figure: float) -> str:
    return size(int(figure))


def _ms(figure: int) -> str:
    return f"{count(figure)} ms" if figure < 10_000 else f"{figure / 1000:,.0f} s"
