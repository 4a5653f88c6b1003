"""Q6: the service level: 20,000 local pages within five minutes, fast enough, with few errors, nearly all of it HTML.

`nephila crawl` with its defaults and no delay is sent to a site on loopback (`local_site`) of 30 KB pages where one
link in thirty leads to a document, a picture or nothing. Three figures must hold:

- at least 50 pages/s, by the server's count, from the first request to the last;
- errors at most 1 % of all exchanges: what failed on the way, and 5xx; a 404 is an answer;
- at least 95 % of what is saved is HTML, by the index of the archive, without robots.txt and the sitemap that every
  host is asked for.

Exit code 0 when all three hold, and 1 when one is missed.

    nephila bench slo [--json] [--quick] [--pages N]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from local_site.arguments import one_sentence
from local_site.crawling import Order, Visit, crawl
from local_site.pages import Plan
from local_site.running import Service, served

PAGES = 20_000
QUICK_PAGES = 2_000
LIMIT_S = 300
LEAST_PAGES_PER_S = 50.0
MOST_ERRORS = 0.01
LEAST_HTML = 0.95
GONE = "http_4xx"
"""That a page is no longer there is an answer, and nobody's failure."""
HTML = frozenset({"text/html", "application/xhtml+xml"})


def saved_types(out: Path) -> Counter[str]:
    """Media types of the answers that the indexes of the archive list, robots.txt and guesses left out."""
    found: Counter[str] = Counter()
    for index in (out / "warc").rglob("*.cdxj"):
        for line in index.read_text(encoding="utf-8").splitlines():
            fields = json.loads(line.split(" ", 2)[2])
            if not fields["url"].endswith(("/robots.txt", "/sitemap.xml")):
                found[fields["mime"]] += 1
    return found


def judge(visit: Visit, types: Counter[str], pages: int) -> dict[str, Any]:
    """The figures and whether they hold."""
    summary = visit.summary
    errors = {kind: count for kind, count in summary["errors"].items() if kind != GONE}
    answered = sum(count for kind, count in errors.items() if kind.startswith("http_"))
    failed = sum(errors.values())
    exchanges = summary["responses"] + failed - answered
    saved = types.total()
    figures = {
        "pages_per_s": round(visit.pages / max(1e-9, visit.served["busy_s"]), 1),
        "error_share": round(failed / max(1, exchanges), 5),
        "html_share": round(sum(types[media] for media in HTML) / max(1, saved), 5),
    }
    held = {
        "pages_per_s": figures["pages_per_s"] >= LEAST_PAGES_PER_S,
        "error_share": figures["error_share"] <= MOST_ERRORS,
        "html_share": figures["html_share"] >= LEAST_HTML,
        "all_pages": visit.pages >= pages and visit.spent.wall_s <= LIMIT_S,
    }
    return {
        "bench": "slo",
        "pages": visit.pages,
        "wanted_pages": pages,
        "wall_s": round(visit.spent.wall_s, 1),
        "limit_s": LIMIT_S,
        **figures,
        "saved": dict(types),
        "statuses": summary["statuses"],
        "errors": summary["errors"],
        "cpu_ms_per_page": visit.figures()["cpu_ms_per_page"],
        "peak_rss_mb": visit.figures()["peak_rss_mb"],
        "targets": {"pages_per_s": LEAST_PAGES_PER_S, "error_share": MOST_ERRORS, "html_share": LEAST_HTML},
        "held": held,
        "ok": all(held.values()),
    }


def show(report: dict[str, Any]) -> None:
    """The report for people."""

    def line(name: str, words: str) -> None:
        print(f"{'held  ' if report['held'][name] else 'MISSED'}  {words}")

    line("pages_per_s", f"{report['pages_per_s']:,.0f} pages/s (at least {LEAST_PAGES_PER_S:.0f})")
    line("error_share", f"{report['error_share']:.2%} errors (at most {MOST_ERRORS:.0%})")
    line("html_share", f"{report['html_share']:.2%} of what is saved is HTML (at least {LEAST_HTML:.0%})")
    line("all_pages", f"{report['pages']:,} pages in {report['wall_s']:.0f} s (at most {LIMIT_S} s)")


def main() -> None:
    """Parse the arguments, run, and end with the exit code."""
    parser = argparse.ArgumentParser(prog="nephila bench slo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_PAGES:,} pages only; ends within 45 s")
    parser.add_argument("--pages", type=int, default=0, metavar="N", help=f"other than {PAGES:,}")
    one_sentence(parser)
    given = parser.parse_args()
    pages = given.pages or (QUICK_PAGES if given.quick else PAGES)
    if pages < 1:
        parser.error("--pages is at least 1")
    types: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="nephila-bench-") as directory:
        folder = Path(directory)
        with served(Service(Plan(pages * 2, 30), rough=True), folder) as site:
            order = Order(pages, ("--max-time", str(LIMIT_S)))
            visit = crawl(site, order, folder, read=lambda out: types.update(saved_types(out)))
    report = judge(visit, types, pages)
    if given.json:
        print(json.dumps(report))
    else:
        show(report)
    sys.exit(0 if report["ok"] else 1)


if __name__ == "__main__":
    main()
