"""Puts the optional extension into a wheel that is built where there is a C compiler (a hook of hatchling)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # type: ignore[import-not-found, unused-ignore]

sys.path.insert(0, str(Path(__file__).parent))
import native


class NativeBuildHook(BuildHookInterface):  # type: ignore[misc, unused-ignore]
    """Compiles `native/*.c`; without a compiler the wheel is one of pure Python."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files."""
        del version
        self._directory = tempfile.TemporaryDirectory()
        try:
            built = native.build(Path(self.root), Path(self._directory.name))
        except native.NotBuiltError as error:
            self.app.display_warning(f"{native.NAME} was not built: {error}. Nephila works without it, slower.")
            return
        build_data["force_include"][str(built)] = built.name
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
