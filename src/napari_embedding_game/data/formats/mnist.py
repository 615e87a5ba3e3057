"""Download and read the four files of MNIST."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.limits.memory import check_inflates

_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_IMAGES = ("train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz")
_LABELS = ("train-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
_SHA256 = {
    _IMAGES[0]: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    _IMAGES[1]: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    _LABELS[0]: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    _LABELS[1]: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_SECONDS_TO_CONNECT = 10


def cache_folder() -> Path:
    """Folder in which downloaded files are kept."""
    import pooch

    return Path(pooch.os_cache("napari-embedding-game")) / "mnist"


def download() -> Path:
    """Folder with the four files; what is missing or damaged is downloaded.

    Raises
    ------
    DataError
        If no mirror can be reached, or sends something else.
    """
    folder = cache_folder()
    for name in _SHA256:
        _fetch(name, folder)
    return folder


def _fetch(name: str, folder: Path) -> None:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    fetch = pooch.HTTPDownloader(timeout=_SECONDS_TO_CONNECT)
    problem: Exception | None = None
    for mirror in _MIRRORS:
        try:
            pooch.retrieve(
                mirror + name, f"sha256:{_SHA256[name]}", name, folder, downloader=fetch
            )
        except (OSError, ValueError) as error:  # not reached, or another SHA-256
            problem = error
        else:
            return
    raise DataError(
        f"MNIST could not be downloaded ({name}): connect to the internet and try "
        f"again, or put its four .gz files into {folder}."
    ) from problem


def load(folder: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Pictures (70,000, 28, 28) and digits (70,000,) from the files in `folder`."""
    pictures = np.concatenate([_read_idx(folder / name) for name in _IMAGES])
    labels = np.concatenate([_read_idx(folder / name) for name in _LABELS])
    return pictures, labels


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """Array of an IDX file: two zeros, type, dimensions, their sizes, bytes."""
    if not path.exists():
        raise DataError(
            f"{path} does not exist: choose the folder with the four MNIST files "
            f"({', '.join(_SHA256)}) or an .npz file."
        )
    check_inflates(path)
    with explain_damage(path, "an MNIST file"), gzip.open(path) as file:
        n_dimensions = file.read(4)[3]
        shape = np.frombuffer(file.read(4 * n_dimensions), dtype=">i4")
        return np.frombuffer(file.read(), dtype=np.uint8).reshape(shape)
