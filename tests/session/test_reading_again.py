"""Files of each kind that are read again in another way, as they were or changed."""

import anndata
import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.identity import Identity
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.sources import FileSource

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(60, 5))


def without_X(path, rows=NUMBERS):
    """Write two spaces that have no part in common, as reading one shows none."""
    data = AnnData(obsm={"X_a": rows, "X_b": rows[:, :4] ** 2})
    worlds.write_adata(data, path)


def arrays(path, rows=NUMBERS):
    np.savez(path, X=rows, again=rows[:, ::-1], other=RNG.normal(size=(30, 3)))


def cytometry(path, rows=NUMBERS):
    path.mkdir(exist_ok=True)
    worlds.cytometry(path / "a.fcs", n=40)
    if rows is not NUMBERS:
        worlds.cytometry(path / "b.fcs", n=40)


def table(path, rows=NUMBERS):
    frame = pd.DataFrame(rows, columns=[f"G{i}" for i in range(5)])
    (frame.to_parquet if path.suffix == ".parquet" else frame.to_csv)(path, index=False)


def tenx(path, rows=NUMBERS):
    worlds.tenx(path, np.rint(np.abs(rows) * 9))


OTHER_ORDER = "another order, which their names do not show"
KINDS = {
    "cells.h5ad": (without_X, {"space": "X_b"}, OTHER_ORDER),
    "cells.zarr": (without_X, {"space": "X_b"}, OTHER_ORDER),
    "cells.npz": (arrays, {"space": "again"}, OTHER_ORDER),
    "events": (cytometry, {"space": "values as stored"}, "now has 80 rows"),
    "cells.csv": (table, {"columns": ("G0", "G2")}, OTHER_ORDER),
    "cells.parquet": (table, {"columns": ("G0", "G2")}, OTHER_ORDER),
    "cells.h5": (tenx, {"missing": "drop"}, OTHER_ORDER),
}


def read_again(desk, path, **options):
    """Read a file again, as the window does, and return whether it is the same."""
    known = Identity.from_dataset(desk.session.dataset)
    source = FileSource(path)
    result = finish(source.read_again(ReadOptions(**options), known))
    return desk.maps.open_new_reading(result.dataset)


@pytest.mark.parametrize("name", KINDS)
def test_a_file_is_the_same_until_its_rows_are_others(tmp_path, name):
    write, options, why = KINDS[name]
    write(path := tmp_path / name)
    desk = worlds.Desk(finish(FileSource(path).read(ReadOptions())).dataset)
    desk.book.make_group(np.arange(9), "T")
    assert read_again(desk, path, **options)
    assert len(desk.book.clustering.rows_in_cluster(desk.book.clusters[-1].id)) == 9
    shown = desk.session.dataset
    write(path, NUMBERS[::-1])
    with pytest.raises(DataError, match=rf"^{name} has changed since .*{why}"):
        read_again(desk, path)
    assert desk.session.dataset is shown


def test_other_rows_that_were_asked_for_are_other_data(tmp_path):
    arrays(path := tmp_path / "cells.npz")
    desk = worlds.Desk(finish(FileSource(path).read(ReadOptions())).dataset)
    assert not read_again(desk, path, space="other")
    table(path := tmp_path / "cells.csv")
    desk = worlds.Desk(finish(FileSource(path).read(ReadOptions())).dataset)
    assert not read_again(desk, path, transposed=True)


def test_components_that_were_made_anew_are_of_the_same_cells(tmp_path):
    data = AnnData(NUMBERS.astype(np.float32), obsm={"X_pca": NUMBERS})
    data.write_h5ad(path := tmp_path / "cells.h5ad")
    desk = worlds.Desk(finish(FileSource(path).read(ReadOptions())).dataset)
    data.obsm["X_pca"] = NUMBERS[:, ::-1]
    data.write_h5ad(path)
    assert read_again(desk, path)
    del data.obsm["X_pca"]
    anndata.AnnData(obsm={"X_lda": NUMBERS}).write_h5ad(path)
    with pytest.raises(DataError, match=r"no longer holds .*, by which its rows could"):
        read_again(desk, path)
