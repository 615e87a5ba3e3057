"""What is read of files and written to others, against approved texts."""

from dataclasses import fields

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import worlds
from approved import numbers
from figure_texts import figure_lines
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import (
    DotPlot,
    ExpressionPlot,
    MapPlot,
    PlatePlot,
    PointColors,
    SharesPlot,
    ViolinPlot,
    VolcanoPlot,
    draw,
)
from napari_embedding_game.data.export.writers import write_result
from napari_embedding_game.data.read_options import ReadOptions, Recipe
from napari_embedding_game.data.readers import read_in_stages

SKIPPED = ("row_hashes", "known", "read_options")


def dataset_lines(dataset, folder):
    """Return lines of all fields of a dataset, numbers by their sums."""
    lines = []
    for one in fields(dataset):
        value = getattr(dataset, one.name)
        if (
            one.name in SKIPPED
            or value is None
            or (
                not isinstance(value, (pd.DataFrame, np.ndarray, pd.Index))
                and not sp.issparse(value)
                and not value
            )
        ):
            continue
        lines += (f"  {line}" for line in value_lines(one.name, value, folder))
    said, nouns = dataset.expression, (dataset.row_noun, dataset.source_row_noun)
    lines.append(f"  kind {said.kind}, {said.note}")
    lines.append(f"  nouns {nouns} {dataset.column_noun}")
    is_measured, are_distances = dataset.has_measures, dataset.is_distances
    lines.append(f"  measures {is_measured}, distances {are_distances}")
    return lines


def value_lines(name, value, folder):
    if isinstance(value, pd.DataFrame):
        yield f"{name} of {len(value)} rows {[*map(str, value.index[:3])]}"
        for column, values in value.items():
            if values.dtype.kind in "fiu":
                yield f"  {column} {numbers(values)}"
            else:
                is_known = values.dtype == "category"
                levels = [*map(str, values.cat.categories[:9])] if is_known else ""
                yield f"  {column} {[*map(str, values[:4])]} {levels}"
    elif sp.issparse(value):
        yield f"{name} {value.format} {value.shape} {numbers(value.toarray())}"
    elif isinstance(value, np.ndarray):
        yield f"{name} {value.dtype.kind} {value.shape} {numbers(value)}"
    elif isinstance(value, pd.Index):
        yield f"{name} {len(value)} {[*map(str, value[:4])]}"
    elif name == "roles":
        yield f"roles {dict(value)}"
    elif isinstance(value, dict) or hasattr(value, "items"):
        for key, one in value.items():
            yield from value_lines(f"{name}[{key}]", one, folder)
    elif hasattr(value, "__dataclass_fields__"):
        for one in fields(value):
            part = getattr(value, one.name)
            yield from value_lines(f"{name}.{one.name}", part, folder)
    elif isinstance(value, tuple) and len(value) > 9:
        yield f"{name} {len(value)} {value[:4]}"
    elif isinstance(value, float):
        yield f"{name} {value:.3g}"
    else:
        yield f"{name} {str(value).replace(str(folder), 'FOLDER')}"


class Reader:
    """Reads one file after another, and writes down what it is told."""

    def __init__(self, folder):
        self.folder, self.lines = folder, []
        self._before = []
        """Lines of the file before, which are not said again."""

    def read(self, name, content=None, **options):
        """Write a text, or take the file that is there, and read it."""
        path = self.folder / name
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif isinstance(content, bytes):
            path.write_bytes(content)
        said = ", ".join(f"{key}={value}" for key, value in options.items())
        self.lines.append(f"== {name} {said}".rstrip())
        stages = []
        try:
            result = self._finish(read_in_stages(path, ReadOptions(**options)), stages)
        except DataError as error:
            told = str(error).replace(str(self.folder), "FOLDER")
            self.lines.append(f"  {type(error).__name__}: {told}")
            return None
        self.lines.append(f"  stages {list(dict.fromkeys(stages))}")
        found = dataset_lines(result.dataset, self.folder)
        for one in fields(result):
            value = getattr(result, one.name)
            if one.name not in ("dataset", "options") and value is not None:
                found += (f"  {x}" for x in value_lines(one.name, value, self.folder))
        self.lines += [one for one in found if one not in self._before]
        self._before = found
        return result.dataset

    def _finish(self, stages, said):
        while True:
            try:
                said.append(next(stages).text)
            except StopIteration as ended:
                return ended.value


def table(n=12, sep=","):
    """Return a table of numbers with a column of each role."""
    rng = np.random.default_rng(0)
    rows = [
        ["name", "kind", "donor", "x", "y", "cell_id", "text", "area", "tone", "day"]
    ]
    for i in range(n):
        values = rng.integers(1, 99, 4)
        rows.append(
            [
                f"c{i}",
                "BT"[i % 2],
                f"d{i % 3}",
                values[0],
                values[1],
                f"{i:04}",
                f"word {i}",
                values[2] / 8,
                values[3] / 4,
                f"2024-05-0{i % 9 + 1}",
            ]
        )
    return "".join(sep.join(map(str, one)) + "\n" for one in rows)


def test_files_are_read_as_approved(approve, tmp_path):
    reader = Reader(tmp_path)
    read = reader.read
    read("plain.csv", table())
    read("tabs.tsv", table(sep="\t"))
    read("semicolons.csv", table(sep=";").replace(".", ","))
    read("turned.csv", table(), transposed=True)
    read("chosen.csv", table(), columns=("area",))
    read("by_names.csv", table(), space="area,tone")
    read("by_id.csv", table(), id_column="cell_id")
    read("roles.csv", table(), roles={"day": "groups", "area": "groups"})
    gaps = table().replace("d1", "").splitlines()
    gaps[3] = ",".join(["c2", "B", "d2", "1", "2", "0002", "w", "", "inf", "-"])
    read("gaps.csv", "\n".join(gaps))
    read("gaps.csv", missing="drop")
    np.save(tmp_path / "numbers.npy", np.arange(24.0).reshape(6, 4) ** 2)
    read("numbers.npy")
    np.savez(
        tmp_path / "many.npz",
        X=np.arange(24.0).reshape(6, 4) ** 2,
        labels=np.arange(6) % 2,
        names=np.array([*"uvwxyz"]),
    )
    read("many.npz")
    pd.read_csv(tmp_path / "plain.csv").to_parquet(tmp_path / "table.parquet")
    read("table.parquet")
    adata = worlds.annotated(X_pca=5, X_umap=2, spatial=2)
    adata.uns["type_colors"] = ["#ff0000", "#00ff00"]
    adata.var["gene_ids"] = [f"ENSG{i:011}" for i in range(6)]
    worlds.write_adata(adata, tmp_path / "cells.h5ad")
    for space in (None, "X", "layers['dense']", "obsm['spatial']", "obsm['none']"):
        read("cells.h5ad", space=space)
    read("cells.h5ad", space="X", gene_kind="counts")
    worlds.write_adata(adata, tmp_path / "cells.zarr")
    read("cells.zarr")
    counts = worlds.raw_counts(20, 110, donor=["a", "b"] * 10)
    worlds.write_adata(counts, tmp_path / "counts.h5ad")
    read("counts.h5ad")
    worlds.tenx(tmp_path / "tenx.h5", counts.X[:, :20])
    read("tenx.h5")
    worlds.tenx(tmp_path / "tenx", counts.X[:, :20], packed=True)
    read("tenx")
    worlds.cytometry(tmp_path / "flow.fcs", 60)
    read("flow.fcs")
    worlds.cytometry(tmp_path / "mass.fcs", 60, is_mass=True)
    read("mass.fcs")
    approve("read", reader.lines)


def test_files_are_refused_as_approved(approve, tmp_path):
    reader = Reader(tmp_path)
    read = reader.read
    read("absent.csv")
    read("empty.csv", "")
    read("heading.csv", "a,b\n")
    read("one.csv", "a,b\n1,2\n")
    read("same.csv", "a,b\n1,2\n1,2\n1,2\n")
    read("texts.csv", "a,b\nx,y\nz,w\n")
    read("constant.csv", "a,b\n1,2\n1,3\n1,4\n")
    read("twice.csv", "a,a\n1,2\n3,4\n5,6\n")
    read("wide.csv", "a,b\n1,2,3\n3,4\n")
    read("latin.csv", "a,b\nä,2\n".encode("latin-1"))
    read("nul.csv", b"a,b\n1,\0\n")
    read("huge.csv", "a,b\n1e300,2\n3,4\n5,1e308\n")
    read("all_missing.csv", "a,b\n,\n,\n", missing="drop")
    read("unknown.xlsx", "x")
    read("no_id.csv", table(), id_column="absent")
    read("id.csv", table(), id_column="kind")
    read("no_column.csv", table(), columns=("absent",))
    read("no_column.csv", columns=("kind",))
    read("text.npy", b"no numbers")
    np.save(tmp_path / "cube.npy", np.zeros((2, 3, 4, 5)))
    read("cube.npy")
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    read("words.npy")
    np.save(tmp_path / "line.npy", np.arange(5.0))
    read("line.npy")
    np.savez(tmp_path / "two.npz", a=np.zeros((3, 2)), b=np.ones((4, 2)))
    read("two.npz")
    read("no.h5ad", b"no HDF5")
    with h5py.File(tmp_path / "bare.h5ad", "w") as file:
        file["X"] = np.zeros((3, 2))
    read("bare.h5ad")
    with h5py.File(tmp_path / "bare.h5", "w") as file:
        file["other"] = 1
    read("bare.h5")
    read("no.fcs", b"FCS3.0 but no more")
    read("no.parquet", b"PAR1")
    read("no.mtx", "%%MatrixMarket nothing\n")
    (tmp_path / "folder").mkdir()
    read("folder")
    for options in (
        {"missing": "maybe"},
        {"gene_kind": "words"},
        {"roles": {"a": "king"}},
    ):
        with pytest.raises(DataError) as refused:
            ReadOptions(**options)
        reader.lines.append(f"{options}: {refused.value}")
    for name, value in {
        "min_genes": -1,
        "max_mito": -1,
        "n_comps": 1,
        "n_top_genes": 1,
        "min_cells": -1,
        "target_sum": 0.0,
        "max_value": np.inf,
    }.items():
        with pytest.raises(DataError) as refused:
            Recipe(**{name: value})
        reader.lines.append(f"{name}: {refused.value}")
    approve("refused", reader.lines)


def test_files_are_written_as_approved(approve, tmp_path):
    lines, read = [], Reader(tmp_path).read
    worlds.write_adata(worlds.annotated(X_pca=5), tmp_path / "cells.h5ad")
    data = read("cells.h5ad")
    result = worlds.layout(
        12,
        clustering=worlds.clustering(
            np.arange(12) % 2, {0: "T cells"}, {0: "#123456"}, {1: "a note"}
        ),
    )
    for name in ("map.h5ad", "map.csv", "map.parquet"):
        write_result(data, result, tmp_path / name)
        lines.append(f"== {name}")
        if name == "map.h5ad":
            with h5py.File(tmp_path / name) as file:
                for key, item in _entries(file):
                    lines += _item(key, item)
        else:
            path = tmp_path / name
            frame = pd.read_csv(path) if name.endswith("csv") else pd.read_parquet(path)
            lines += value_lines(name, frame, tmp_path)
    data = worlds.read(tmp_path / "cells.h5ad", space="X", missing="drop")
    stated = ReadOptions(roles={"depth": "groups"}, gene_kind="values")
    stated = data.with_roles_and_gene_kind(stated)
    lines += [f"== stated {stated.read_options}", f"{dict(stated.roles)}"]
    lines += value_lines("obs", stated.obs, tmp_path)
    objects = worlds.measure(*worlds.field(0))
    lines += ["== objects", *dataset_lines(objects, tmp_path)]
    texts = [one for one in lines if "version" not in one]
    approve("written", texts)


def _entries(file):
    found = []
    file.visititems(lambda key, item: found.append((key, item)))
    return found


def _item(key, item):
    if not isinstance(item, h5py.Dataset):
        yield f"{key} {item.attrs.get('encoding-type', '')}"
    elif item.dtype.kind in "fiub" and "hash" not in key:
        yield f"{key} {item.shape} {numbers(item[()])}"
    elif item.shape:
        yield f"{key} {[x.decode() for x in item[:4]]}"
    elif "hash" not in key and "/versions/" not in key:
        yield f"{key} {item.asstr()[()]}"


def test_plots_are_painted_as_approved(approve):
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 3
    levels = pd.Categorical.from_codes(codes, ["T cells", "B cells", "_$odd"])
    scale = np.linspace([0, 0, 0, 1], [1, 1, 0, 1], 8)
    places = rng.random((60, 2)) + 5 * codes[:, None]
    colors = PointColors(np.eye(4)[codes], "Cluster", levels)
    genes = {
        "genes": ("CD3D", "MS4A1", "a$b"),
        "groups": ("T cells", "B cells"),
        "values": np.array([[0, 1, 0.5], [1, 0, 0.25]]),
        "scale": scale,
        "title": "Scaled mean",
    }
    densities = np.abs(np.sin(np.arange(2 * 3 * 16).reshape(2, 3, 16)))
    spans = np.array([[0, 1], [0.1, 0.8], [0.5, 0.5]])
    plots = {
        "groups": MapPlot(
            embedding=places,
            colors=colors,
            title="Clusters",
            names=(("T cells", np.zeros(2)), ("B", np.ones(2))),
        ),
        "numbers": MapPlot(
            embedding=places,
            colors=PointColors(
                np.eye(4)[codes], "CD3D", scale=scale, limits=(0.0, 3.0)
            ),
        ),
        "means": ExpressionPlot(**genes),
        "dots": DotPlot(**genes, shares=np.array([[0, 0.5, 1], [1, 0.2, 0.7]])),
        "violins": ViolinPlot(**genes, densities=densities, spans=spans),
        "volcano": VolcanoPlot(
            names=np.array(["UP1", "FLAT", "NONE", "DOWN1"], object),
            changes=np.array([3.0, 0.1, np.nan, -14.0]),
            p_values=np.array([1e-20, 0.9, 1e-9, 0.0]),
            title="B cells against all the rest",
        ),
        "shares": SharesPlot(
            groups=("T cells", "B cells"),
            rgba=np.array([[1, 0, 0, 1], [0, 1, 0, 1]]),
            shares=np.array([[0.2, 0.8], [0.3, 0.7], [0.6, 0.4], [0.5, 0.5]]),
            samples=("d1", "d2", "d1", "d2"),
            is_first=np.array([True, True, False, False]),
            levels=("drug", "control"),
            chosen=1,
            is_paired=True,
        ),
        "plate": PlatePlot(
            shape=(2, 3),
            wells=((0, 0), (1, 2)),
            rgba=np.array([[1, 0, 0, 1], [0, 1, 0, 1]]),
            plate="plate 1",
            is_share=True,
            chosen=((1, 2),),
            scale=scale,
        ),
    }
    lines = []
    for name, plot in plots.items():
        size = numbers(plot.size())
        lines += [f"== {name} {size}", *figure_lines(draw(plot))]
    approve("figures", lines)
