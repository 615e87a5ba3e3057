"""The documents name only files that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "napari_embedding_game"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
FILE = re.compile(r"`((?:core|data|session|ui|papers|tests|tools)/[\w/]*(?:\.py)?)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_a_document_names_are_there(document):
    named = set(FILE.findall(document.read_text(encoding="utf-8")))
    missing = [
        name
        for name in sorted(named)
        if not (ROOT / name).exists() and not (SOURCE / name).exists()
    ]
    assert not missing
