"""Puts ``napari.yaml`` and ``resources/`` where an installed package needs them.

Both stand at the top level of the repository, but napari looks for a manifest
only inside the package directory that Python imports.  A wheel gets them by
inclusion.  An editable install imports straight from ``src``, so it gets links
there (ignored by git); where the system permits no links, copies.

And makes the links of the README whole in the description of a package: on PyPI
there is nothing beside it that ``docs/images/film.gif`` could lead to.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGE = "napari_embedding_game"
TOP_LEVEL = ("napari.yaml", "resources")
BRANCH = "main"
RELATIVE_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)\s]+)\)")
"""Of Markdown: "!" for an image, the text in brackets, the target."""


class TopLevelFiles(BuildHookInterface):
    """Build hook for the wheel target; an sdist holds the files as they stand."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Include the files in a ``standard`` wheel, link them for ``editable``."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        for name in TOP_LEVEL:
            if version == "editable":
                link(root / name, root / "src" / PACKAGE / name)
            else:
                build_data["force_include"][str(root / name)] = f"{PACKAGE}/{name}"


class WholeLinks(MetadataHookInterface):
    """Metadata hook: the README as the description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set ``readme``."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = with_whole_links(text, metadata["urls"]["Source"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_whole_links(text: str, source: str) -> str:
    """Let relative links and images lead into the repository ``source``."""

    def whole(found: re.Match[str]) -> str:
        mark, label, target = found.groups()
        way = "raw" if mark else "blob"
        return f"{mark}{label}({source}/{way}/{BRANCH}/{target})"

    return RELATIVE_LINK.sub(whole, text)


def link(source: Path, place: Path) -> None:
    """Make ``place`` show ``source``, replacing an earlier link or copy."""
    remove(place)
    try:
        place.symlink_to(os.path.relpath(source, place.parent), source.is_dir())
    except OSError:  # Windows without the right to make links
        copy = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, place)


def remove(place: Path) -> None:
    """Remove a link, file or folder; never what a link points to."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
