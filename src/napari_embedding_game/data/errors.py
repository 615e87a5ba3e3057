"""Errors about files and tables; each message is one sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

logger = logging.getLogger(__name__)
_LOCKED = "unable to lock file"
"""HDF5's message for a file that another program holds open; there is no other sign."""


class DataError(ValueError):
    """A sentence about a file or a table, to be shown to the user as it is."""


class MissingValuesError(DataError):
    """Rows have missing values, and the options say not to leave them out.

    ``str()`` names the remedy for a caller of a reader; :meth:`describe_with_remedy`
    puts another remedy into the sentence.
    """

    def __str__(self) -> str:
        return self.describe_with_remedy('missing="drop"')

    def describe_with_remedy(self, remedy: str) -> str:
        """Return the error sentence with a remedy in brackets: "(--missing drop)"."""
        return f"{self.args[0]} ({remedy})."


def check_installed(package: str, needed_by: str, remedy: str = "") -> None:
    """Raise DataError unless a package, which `needed_by` needs, is installed."""
    if find_spec(package) is None:
        raise DataError(
            f"{needed_by} needs {package}, which is not installed: run "
            f"`pip install {package}`{remedy}."
        )


@contextmanager
def wrap_read_errors(path: Path, file_kind: str) -> Iterator[None]:
    """Convert any exception in the block, raised while reading `path`, to a DataError.

    An empty file raises DataError before the block runs; a DataError of the block stays
    as it is. `file_kind` completes "could not be read as ...", for instance "an .npz
    file".
    """
    try:
        if path.is_file() and path.stat().st_size == 0:
            raise DataError(
                f"{path.name} is empty: there is nothing in the file; copy or export "
                "it again."
            )
        yield
    except DataError:
        raise
    except PermissionError as error:
        raise DataError(
            f"{path} may not be read: close it in other programs, change its "
            "permissions or those of its folder, or copy it."
        ) from error
    except MemoryError as error:
        raise DataError(
            f"{path.name} does not fit into this computer's memory, or is damaged: "
            "embed a smaller part of it, for instance its principal components, or "
            "export it again."
        ) from error
    except Exception as error:  # libraries raise any type for damaged files
        # The cause may be a defect of this program.
        logger.info("Reading %s failed", path, exc_info=True)
        if _LOCKED in str(error):
            raise DataError(
                f"{path.name} is open in another program, which may be writing it: "
                "close it there, then open it again."
            ) from error
        raise DataError(
            f"{path.name} could not be read as {file_kind}: the file is damaged, cut "
            "short or of another kind than its name says; copy or export it again."
        ) from error
