"""Forms of an export, each as something that takes captures one after the other."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from nephila.export import DocumentWriter, LeftOut
from nephila.export.lines import EdgeLines, PageLines
from nephila.export.table import EdgeTable, PageTable
from nephila.export.target import draft_file, draft_folder
from nephila.export.tree import PageTree, html_file, markdown_file, text_file

from .order import ExportOrder, Form
from .reading import Documents, Found, LeftOutError

PACKING = 6
"""The level of gzip: its own default."""


class Sink(Protocol):
    """Takes what was found."""

    def add(self, found: Found) -> None:
        """One more. Raises `LeftOutError` for one that turns out not to belong."""


class DocumentSink:
    """Gives documents to a writer."""

    def __init__(self, documents: Documents, writer: DocumentWriter, order: ExportOrder) -> None:
        self._documents = documents
        self._writer = writer
        self._selection = order.selection

    def add(self, found: Found) -> None:
        """As the protocol."""
        document = self._documents.document(found)
        if not self._selection.is_of_type(document.media_type):
            raise LeftOutError(LeftOut.TYPE)
        withheld = self._selection.withheld(noindex=document.noindex, noarchive=document.noarchive)
        if withheld is not None:
            raise LeftOutError(withheld)
        self._writer.add(document)


@contextmanager
def document_sink(order: ExportOrder, documents: Documents) -> Iterator[DocumentSink]:
    """The sink of any form that is made of documents; what it wrote is in its place at the end of the block."""
    with ExitStack() as stack:
        writer = _writer(order, stack)
        yield DocumentSink(documents, writer, order)
        writer.close()


def _writer(order: ExportOrder, stack: ExitStack) -> DocumentWriter:
    if order.to is None:
        return _lines(order, sys.stdout.buffer)
    if order.form.is_folder:
        return _tree(order, stack.enter_context(draft_folder(order.to)))
    draft = stack.enter_context(draft_file(order.to))
    if order.as_parquet:
        return stack.enter_context(_table(order, draft))
    return _lines(order, stack.enter_context(_stream(draft, packed=order.is_packed)))


def _tree(order: ExportOrder, root: Path) -> PageTree:
    dated = not order.selection.newest
    match order.form:
        case Form.HTML:
            return PageTree(root, ".html", html_file, dated=dated)
        case Form.MARKDOWN:
            return PageTree(root, ".md", markdown_file, dated=dated)
        case _:
            return PageTree(root, ".txt", text_file, dated=dated)


@contextmanager
def _table(order: ExportOrder, draft: Path) -> Iterator[PageTable | EdgeTable]:
    table = EdgeTable(draft) if order.form is Form.LINKS else PageTable(draft)
    try:
        yield table
    except BaseException:
        table.abandon()
        raise


def _lines(order: ExportOrder, stream: BinaryIO) -> DocumentWriter:
    return EdgeLines(stream) if order.form is Form.LINKS else PageLines(stream)


@contextmanager
def _stream(path: Path, *, packed: bool) -> Iterator[BinaryIO]:
    """A file to write to; packed it says neither its name nor the time, so that the same pages give the same bytes."""
    with path.open("wb") as plain:
        if not packed:
            yield plain
            return
        with gzip.GzipFile(filename="", fileobj=plain, mode="wb", compresslevel=PACKING, mtime=0) as stream:
            yield cast("BinaryIO", stream)
