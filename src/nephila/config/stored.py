"""The configuration that lies in a crawl directory, so that the same command without its flags goes on as before.

Only what differs from the defaults is kept. The file is replaced in one step: a crash leaves the old or the new one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from nephila.model.errors import CrawlDirectoryError
from nephila.model.settings import Settings

from .toml import dump_toml

CONFIG_NAME = "config.toml"
PASSWORD = re.compile(r"""(://(?:\\.|[^ \n/?#:"\\])*:)(?:\\.|[^ \n/?#"\\])+@""")
"""In a URL in TOML, behind the user's name. Either may have an @ (the last one ends it) or an escaped quote."""


def read_stored(directory: Path) -> str | None:
    """The stored configuration, None when the directory holds no crawl."""
    try:
        return (directory / CONFIG_NAME).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CrawlDirectoryError(
            f"{directory / CONFIG_NAME} cannot be read: {error}.",
            "Mend it, or delete it and give the crawl's flags again.",
        ) from error


def write_stored(directory: Path, settings: Settings) -> None:
    """Keep `settings` as the configuration of the crawl; for its owner alone where a password is among them."""
    path = directory / CONFIG_NAME
    fresh = path.with_suffix(".toml.new")
    text = "# Written by nephila: what this crawl was asked for. Flags and --set override it.\n" + dump_toml(settings)
    if read_stored(directory) == text:
        return
    try:
        fresh.unlink(missing_ok=True)
        mode = 0o600 if PASSWORD.search(text) else 0o666
        with open(fresh, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise CrawlDirectoryError(
            f"{path} cannot be written: {error.strerror}.", "Make room or mend its permissions, and start again."
        ) from error
