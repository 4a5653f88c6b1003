"""Endings of files that are no pages (S2), by kind.

Data only; a refusal quotes the kind. What must stay true: names are in lower case, and nothing that may be HTML or lead
to HTML is among them.
"""

from __future__ import annotations

PDF, OFFICE = "PDF document", "office document"
PACKAGES = "docx dotx docm xlsx xltx xlsm pptx ppsx potx pptm odt ods odp odg"
"""Endings of office documents that are packages of XML, out of which links can be taken (X4)."""

SKIPPED_EXTENSIONS = {
    "image": "apng avif bmp cr2 cur eps gif heic heif ico jfif jp2 jpe jpeg jpg jxl nef png psd raw svg svgz tif "
    "tiff webp",
    "audio": "aac aif aiff amr flac m3u m3u8 m4a mid midi mp3 oga ogg opus pls ra wav weba wma",
    "video": "3g2 3gp asf avi flv m2ts m4s m4v mkv mov mp4 mpeg mpg mpv ogv rm swf ts vob webm wmv",
    "archive": "7z ace bz2 cab gz lz lz4 lzma rar tar tbz2 tgz txz war xz z zip zst",
    "program": "apk appimage bat bin class crx deb dll dmg exe img ipa iso jar msi msix msu pkg rpm vsix whl xpi",
    "font": "eot fon otf ttc ttf woff woff2",
    "style sheet": "css less map sass scss",
    "script": "js mjs wasm",
    OFFICE: "doc docm docx dot dotx epub key mobi numbers odf odg odp ods odt pages pot potx pps ppsx ppt "
    "pptm pptx ps rtf vsd vsdx xls xlsb xlsm xlsx xlt xltx",
    PDF: "pdf",
    "data": "bib csv dat db dbf geojson gpx ics json jsonl kml kmz mdb ndjson parquet sav shp sqlite torrent tsv vcf "
    "webmanifest",
}
"""Endings of files that are no pages, by kind. All that may be HTML or lead to it stays out of this list: html and its
like, server-side endings (php, asp, do, cgi), xml, rss and atom (feeds, sitemaps, XHTML), txt and md. A PDF is not a
page by default either; whoever takes links out of PDFs or office documents (X4) takes those off. ``com`` is a program's
ending too, and far more often the end of a domain in a path."""
