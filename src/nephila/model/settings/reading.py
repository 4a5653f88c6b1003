"""What is read out of bodies beside HTML: documents, pages that scripts make, and what plugins do."""

from __future__ import annotations

from dataclasses import dataclass

from .declaration import setting

RENDER_CHOICES = ("auto", "never")
RESOURCE_CHOICES = ("any", "site", "none")


@dataclass(frozen=True, slots=True)
class PdfSettings:
    """Links out of PDFs (X4)."""

    links: bool = setting(False, "fetch PDFs and follow the links in them", flag="pdf-links")
    keep: bool = setting(False, "store their bodies too; off stores headers and links only", flag="keep-pdf")
    text: bool = setting(True, "take URLs out of their text as well as out of link annotations")
    max_pages: int = setting(2_000, "pages of one PDF that are looked at", low=1)
    time_s: float = setting(3.0, "seconds for one PDF: then what was found by then counts", low=0.01)
    deadline_s: float = setting(10.0, "seconds after which a process that is stuck in one is ended", low=0.1)
    memory_bytes: int = setting(1 << 30, "address space of that process; 0 for no limit", low=0)


@dataclass(frozen=True, slots=True)
class OfficeSettings:
    """Links out of office documents: docx, xlsx, pptx, odt, ods, odp and their like (X4)."""

    links: bool = setting(False, "fetch office documents and follow the links in them", flag="office-links")
    keep: bool = setting(False, "store their bodies too; off stores headers and links only", flag="keep-office")
    max_unpacked_bytes: int = setting(64_000_000, "bytes of one document that are unpacked, whatever it claims", low=1)
    time_s: float = setting(3.0, "seconds for one document: then what was found by then counts", low=0.01)
    deadline_s: float = setting(10.0, "seconds after which a process that is stuck in one is ended", low=0.1)
    memory_bytes: int = setting(1 << 30, "address space of that process; 0 for no limit", low=0)


@dataclass(frozen=True, slots=True)
class RenderSettings:
    """Pages that are made by their scripts (J1-J4); `docs/rendering.md` tells what a browser needs."""

    enabled: str = setting(
        "auto", "render pages in a browser where scripts seem to make them", flag="render", choices=RENDER_CHOICES
    )
    executable: str = setting("", "the Chromium to use; empty looks for one")
    browsers: int = setting(0, "browsers of a process; 0 is as many as memory and cores allow", low=0, high=50)
    pages_at_once: int = setting(4, "pages that one browser shows at once", low=1, high=32)
    share: float = setting(
        0.1, "share of the exchanges at once that may be pages on their way to a browser", low=0, high=1
    )
    time_s: float = setting(10.0, "seconds for one page: then what there is of it counts", low=0.1, high=300)
    rest_s: float = setting(0.5, "seconds without a request after which a page has come to rest", low=0.01, high=60)
    recycle_pages: int = setting(100, "pages after which a browser is replaced", low=1)
    memory_bytes: int = setting(
        1 << 30, "memory of one browser with all its processes; over it, it is killed", low=1 << 26
    )
    max_requests: int = setting(30, "requests of one page to its own host, itself included (J3)", low=1, high=1000)
    requests_at_once: int = setting(2, "of those, at once", low=1, high=16)
    max_part_bytes: int = setting(5_000_000, "bytes of one answer to a page in a browser", low=1)
    max_dom_bytes: int = setting(
        10_000_000, "bytes of a document as its scripts left it; a larger one is not kept", low=1
    )
    cache_bytes: int = setting(64 << 20, "bytes of scripts that are kept at hand for the next page", low=0)
    resources: str = setting(
        "any",
        "scripts and data that pages need of other hosts: of any, of hosts of their own site, or none",
        choices=RESOURCE_CHOICES,
    )
    max_resources: int = setting(20, "of those, for one page", low=0, high=1000)
    max_resource_hosts: int = setting(6, "hosts that these may lie on, for one page", low=0, high=100)
    rounds: int = setting(3, "times that a page waits for them, and is shown again", low=0, high=10)
    wait_s: float = setting(
        120.0, "seconds that it waits in all; then it is shown with what there is", low=1, high=3600
    )
    shelf_bytes: int = setting(
        256 << 20, "bytes of such resources, and of pages that wait for them, kept beside the crawl", low=1 << 20
    )
    attempts: int = setting(3, "browsers that a page is shown to, where one crashes or hangs under it", low=1, high=10)


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """Plugins (E1); `docs/plugins.md` tells how to write one."""

    enabled: tuple[str, ...] = setting((), "installed plugins to switch on, by name", flag="plugin")
    options: tuple[str, ...] = setting(
        (), "their options, each as NAME.OPTION=VALUE; in a file also as a table [plugins.NAME]", flag="plugin-option"
    )
    deadline_s: float = setting(5.0, "seconds for one call of a plugin", low=0.01)
    quick_s: float = setting(0.05, "and of one that is called on the crawl's own loop", low=0.0001)
    failures: int = setting(5, "failures in a row after which a plugin is switched off; 0 for never", low=0)
    overruns: int = setting(20, "overrun deadlines in all after which it is; 0 for never", low=0)
    memory_bytes: int = setting(4 << 30, "address space of a plugin's process; 0 for no limit", low=0)
    max_document_bytes: int = setting(10_000_000, "bytes of a body that a plugin is given", low=1)
    allow_credentials: bool = setting(False, "let fetch hooks add cookies and credentials; they are archived, too")
