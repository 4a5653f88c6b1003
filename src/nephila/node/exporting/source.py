"""What an export reads: the catalogue of a crawl, its archive wherever it lies, and what of it is to be taken down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nephila.config import load, read_stored
from nephila.engines.disk import Disk
from nephila.interfaces.catalogue import WholeCatalogue
from nephila.model.settings import Settings
from nephila.node.addressing import identifier_of, identify_with
from nephila.node.audit.case import case_of_directory
from nephila.node.cataloguing import crawl_name, has_catalogue, read_catalogue
from nephila.node.directory import CrawlDirectory
from nephila.node.losses import what_is_lacking
from nephila.node.takedown import Takedown
from nephila.node.takedown.record import TakedownFolder
from nephila.node.takedown.target import Target
from nephila.store.trail import ARCHIVES


@dataclass(frozen=True, slots=True)
class Source:
    """One crawl."""

    name: str
    catalogue: WholeCatalogue
    archives: Path
    """The folder that files of the archive are opened in."""
    disk: Disk
    settings: Settings
    is_taken_down: Callable[[str], bool]
    """Whether a URL is to be taken down and may still be there: an order that is not carried out yet (K2)."""


def taken_down_by(takedowns: Sequence[Takedown], settings: Settings) -> Callable[[str], bool]:
    """Whether one of these orders means a URL. Under which secret URLs are told apart makes no difference here."""
    identify = identify_with(identifier_of(settings, 0))
    targets = [Target(one.order, identify) for one in takedowns]
    return lambda url: any(target.names(url) for target in targets)


@contextmanager
def source_of_directory(out: Path) -> Iterator[Source]:
    """The crawl in a directory, whether it runs or not; raises `CrawlDirectoryError` where there is none."""
    directory = CrawlDirectory(out)
    directory.check()
    settings = load(stored=read_stored(out)).settings
    if not has_catalogue(directory, settings):
        raise what_is_lacking(directory)
    takedowns = TakedownFolder(directory.takedowns).pending()
    with read_catalogue(directory, settings) as catalogue, case_of_directory(out) as case:
        root, disk = case.archives
        name = crawl_name(directory, settings)
        yield Source(name, catalogue, root / ARCHIVES, disk, settings, taken_down_by(takedowns, settings))
