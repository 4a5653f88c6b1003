"""Office documents of our own making: whole ones of each kind, and broken, bombed and hostile ones."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from xml.sax.saxutils import quoteattr

RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"
HYPERLINK = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink"
IMAGE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/image"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def package(parts: Mapping[str, str | bytes], *, stored: bool = False) -> bytes:
    """A package of these parts."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as out:
        for name, data in parts.items():
            out.writestr(name, data)
    return held.getvalue()


def rels(*targets: str, kind: str = HYPERLINK, mode: str = ' TargetMode="External"') -> str:
    """The relationships of a part."""
    lines = "".join(
        f'<Relationship Id="rId{number}" Type="{kind}" Target={quoteattr(target)}{mode}/>'
        for number, target in enumerate(targets, 1)
    )
    return f'{XML}<Relationships xmlns="{RELATIONSHIPS}">{lines}</Relationships>'


def docx(*targets: str, fields: tuple[str, ...] = (), title: str = "A letter", stored: bool = False) -> bytes:
    """A text: links as relationships, and as fields whose instruction is cut into two runs."""
    runs = "".join(
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f'<w:r><w:instrText xml:space="preserve"> HYPERLINK "{target[:9]}</w:instrText></w:r>'
        f'<w:r><w:instrText>{target[9:]}" </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
        "<w:r><w:t>here</w:t></w:r>"
        for target in fields
    )
    parts = {
        "[Content_Types].xml": f"{XML}<Types/>",
        "_rels/.rels": rels("word/document.xml", kind=HYPERLINK.replace("hyperlink", "officeDocument"), mode=""),
        "docProps/core.xml": f"{XML}<cp:coreProperties><dc:title>{title}</dc:title></cp:coreProperties>",
        "word/document.xml": f"{XML}<w:document><w:body><w:p>{runs}<w:t>https://in.text/</w:t></w:p></w:body></w:document>",
        "word/_rels/document.xml.rels": rels(*targets),
        "word/media/image1.png": b"\x89PNG" + bytes(1000),
    }
    return package(parts, stored=stored)


def xlsx(*targets: str, formulas: tuple[str, ...] = ()) -> bytes:
    """A table: links as relationships of a sheet, and as formulas."""
    cells = "".join(f'<c><f>HYPERLINK("{target}","x")</f><v>1</v></c>' for target in formulas)
    return package(
        {
            "xl/workbook.xml": f"{XML}<workbook/>",
            "xl/worksheets/sheet1.xml": f"{XML}<worksheet><sheetData><row>{cells}</row></sheetData></worksheet>",
            "xl/worksheets/_rels/sheet1.xml.rels": rels(*targets),
        }
    )


def pptx(*targets: str) -> bytes:
    """Slides, each with a link; a picture that is linked is none."""
    parts: dict[str, str | bytes] = {"ppt/presentation.xml": f"{XML}<p:presentation/>"}
    for number, target in enumerate(targets, 1):
        parts[f"ppt/slides/slide{number}.xml"] = f"{XML}<p:sld/>"
        parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = rels(target)
    parts["ppt/slideLayouts/_rels/a.xml.rels"] = rels("https://picture.test/x.png", kind=IMAGE)
    return package(parts)


def odf(*targets: str, cell: str = "") -> bytes:
    """An OpenDocument: links as references, a picture, and perhaps a formula."""
    links = "".join(
        f'<text:p><text:a xlink:type="simple" xlink:href={quoteattr(one)}>x</text:a></text:p>' for one in targets
    )
    formula = f"<table:table-cell table:formula='of:=HYPERLINK(&quot;{cell}&quot;;&quot;x&quot;)'/>" if cell else ""
    picture = '<draw:image xlink:href="Pictures/1.png"/>'
    content = f"{XML}<office:document-content>{links}{formula}{picture}</office:document-content>"
    return package(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": content,
            "meta.xml": f"{XML}<office:meta><dc:title>An open text</dc:title></office:meta>",
        }
    )
