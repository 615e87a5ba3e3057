"""Read files that a coverage-guided fuzzer has damaged: a sentence, or a data set.

    pip install atheris
    python tools/fuzz_readers.py a.csv -runs=20000

The first argument is a name of ``WRITERS`` in ``tests/data/test_damage.py``, which
makes the file that the fuzzer begins with, or ``session.zip``; the others are
libFuzzer's.  Of a folder one file at a time is damaged.  The fuzzer stops at whatever
is no sentence, or takes more than 5 s or 2 GiB, and leaves the input in ``crash-...``:
make it a test.  The window reads in another process, here all is read in this one.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "data"), str(ROOT / "tests")]
with atheris.instrument_imports(
    include=["napari_embedding_game", "anndata", "zipfile", "numpy.lib"]
):
    from test_damage import WRITERS

    from napari_embedding_game.data.errors import DataError
    from napari_embedding_game.data.loading import load
    from napari_embedding_game.data.stages import finish
    from napari_embedding_game.session.file import archive

LIMITS = ("-timeout=5", "-rss_limit_mb=2048")


def session_file(path: Path) -> None:
    """Write the session file of the last version that was released."""
    shutil.copy(sorted((ROOT / "tests" / "archives").glob("*.zip"))[-1], path)


def main() -> None:
    """Damage the files of one format until the fuzzer ends."""
    name, options = sys.argv[1], sys.argv[2:]
    write = session_file if name == "session.zip" else WRITERS[name]
    is_session = name == "session.zip"
    open_file = archive.open_session if is_session else lambda at: finish(load(at))
    folder = Path(tempfile.mkdtemp())
    path, corpus = folder / name, folder / "corpus"
    write(path)
    inside = sorted(each for each in path.rglob("*") if each.is_file())
    files = [each for each in inside if each.stat().st_size] or [path]
    corpus.mkdir()
    for i, file in enumerate(files):
        (corpus / str(i)).write_bytes(bytes([i]) + file.read_bytes())
    honest = [file.read_bytes() for file in files]

    def read_damaged(content: bytes) -> None:
        which = content[0] % len(files) if content else 0
        files[which].write_bytes(content[1:])
        try:
            open_file(path)
        except DataError as error:
            if not str(error).endswith("."):
                raise AssertionError(error) from error
        finally:
            files[which].write_bytes(honest[which])

    warnings.simplefilter("ignore")
    atheris.Setup([sys.argv[0], *LIMITS, *options, str(corpus)], read_damaged)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
