"""Finished parts of a long computation, kept as JSON so that it can be resumed."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from napari_embedding_game.data.export.atomic import whole_or_nothing

Tell = Callable[[str, int, int], None]
"""Receives what is being computed, the parts that are done, and all there are."""
_ARRAY = "array"


class Parts:
    """Computes parts by name, or takes them from the folder where they are kept.

    Parameters
    ----------
    folder : Path
        Where the parts are kept, one JSON file each.
    origin : dict
        What the parts depend on.  Parts of another origin are others.
    tell : callable, optional
        Is told how far the computation is.
    again : bool
        Compute everything, whatever is there.
    """

    def __init__(
        self,
        folder: Path,
        origin: dict[str, Any],
        tell: Tell | None = None,
        again: bool = False,
    ) -> None:
        self._folder = folder
        self._origin = origin
        self._tell = tell
        self._again = again
        self._done = 0
        self._expected = 0
        self._name = ""
        self.seconds = 0.0
        """Time that all parts took, those from the folder included."""
        self.processor_seconds = 0.0
        """The same in processor time, which other programs hardly change."""

    def expect(self, n_parts: int) -> None:
        """Say how many parts there will be, for the progress."""
        self._expected = n_parts
        self.tell()

    def tell(self, detail: str = "") -> None:
        """Report progress, with a word on what goes on inside the part."""
        if self._tell is not None:
            text = f"{self._name}: {detail}" if detail else self._name
            self._tell(text, self._done, self._expected)

    def __call__(self, name: str, compute: Callable[[], dict[str, Any]]) -> Any:
        """Return the part ``name``, a dictionary, computing it if it is not there.

        Values may be numbers, texts, lists, dictionaries and numeric arrays.
        Arrays come back exactly; tuples come back as lists.
        """
        self._name = name
        self.tell()
        path = self._folder / _file_name(name, self._origin)
        kept = None if self._again else self._read(path, name)
        if kept is None:
            kept = self._compute(name, compute)
            _write(path, kept)
        self.seconds += kept["seconds"]
        self.processor_seconds += kept["processor_seconds"]
        self._done += 1
        self.tell()
        return _decoded(kept["values"])

    def _compute(
        self, name: str, compute: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        begin, processor_begin = time.perf_counter(), time.process_time()
        values = _encoded(compute())
        return {
            "part": name,
            "origin": self._origin,
            "seconds": time.perf_counter() - begin,
            "processor_seconds": time.process_time() - processor_begin,
            "values": values,
        }

    def _read(self, path: Path, name: str) -> dict[str, Any] | None:
        """Return what the file holds, or None where it is of no use."""
        if not path.exists():
            return None
        try:
            kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            is_wanted = (kept["part"], kept["origin"]) == (name, self._origin)
            _ = kept["seconds"] + kept["processor_seconds"], kept["values"]
        except (ValueError, LookupError, TypeError):  # not a whole part
            return None
        return kept if is_wanted else None


def _file_name(name: str, origin: dict[str, Any]) -> str:
    """Return a name that every file system takes, another for every origin.

    So a quick run leaves the parts of a long one as they are.
    """
    plain = "".join(c if c.isalnum() or c in "-_.=" else "_" for c in name)
    whole = json.dumps([name, origin], sort_keys=True)
    return f"{plain}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}.json"


def _write(path: Path, kept: dict[str, Any]) -> None:
    with whole_or_nothing(path) as temporary:
        temporary.write_text(json.dumps(kept, indent=1), encoding="utf-8")


def _encoded(value: Any) -> Any:
    """Turn a value into what JSON holds; arrays keep every bit."""
    if isinstance(value, dict):
        return {str(key): _encoded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encoded(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        text = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {_ARRAY: text, "dtype": value.dtype.str, "shape": list(value.shape)}
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY in value:
        flat = np.frombuffer(base64.b64decode(value[_ARRAY]), value["dtype"])
        return flat.reshape(value["shape"]).copy()
    return {key: _decoded(each) for key, each in value.items()}
