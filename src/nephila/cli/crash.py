"""A bug of ours, told in one sentence; the traceback goes to a file that can be sent in.

Installed as `sys.excepthook`, so there is no catch-all anywhere: what nobody foresaw simply goes up to here. The
interpreter then ends with exit code 1.
"""

from __future__ import annotations

import sys
from types import TracebackType

from .output import printable
from .version import version


def report_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback to a file and say where it is; the command line is left out, it may hold secrets."""
    import tempfile  # noqa: PLC0415 - start-up: hardly ever needed
    import traceback  # noqa: PLC0415 - as above

    what = printable(f"{kind.__name__}: {error}")[:200]
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="backslashreplace", prefix="nephila-", suffix=".txt", delete=False
        ) as stream:
            stream.write(f"nephila {version()}, Python {sys.version}, {sys.platform}\n\n")
            stream.writelines(traceback.format_exception(kind, error, trace))
        where = f"the traceback is in {stream.name}"
    except OSError:
        where = "its traceback could not be written; NEPHILA_DEBUG=1 shows it"
    print(f"nephila: an unexpected fault ({what}); {where}. What was stored is safe.", file=sys.stderr)  # noqa: T201 - the last word, without click
