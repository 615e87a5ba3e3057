"""Each block of code in the documents, pasted by itself, as a reader would."""

import re
import runpy
import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from napari_embedding_game import cli
from napari_embedding_game.core.energy import methods, pair_functions

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
FENCED = re.compile(r"^( *)```(python|sh)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(
    r"^ {4}((?:python|make|pip|napari-embedding-game|\.venv\S+) .*)", re.MULTILINE
)
OTHERS_DEFECTS = "upstream.md"
"""It shows defects of napari and vispy, by blocks that end in errors of OpenGL."""


def blocks(language):
    """Return the blocks of a language, with the document and the line of each."""
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for found in FENCED.finditer(text):
            indent, kind, code = found.groups()
            if kind == language and document.name != OTHERS_DEFECTS:
                line = text[: found.start()].count("\n") + 2
                code = re.sub(f"^{indent}", "", code, flags=re.MULTILINE)
                yield pytest.param(code, id=f"{document.name}:{line}")


def commands():
    """Return the lines that a reader types, without their comments."""
    for block in blocks("sh"):
        for line in re.sub(r"\\\n *", "", block.values[0]).splitlines():
            yield pytest.param(line, id=f"{block.id}:{line[:40]}")
    for document in DOCUMENTS:
        for line in COMMAND.findall(document.read_text(encoding="utf-8")):
            yield pytest.param(line, id=f"{document.name}:{line[:40]}")


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Return what a reader has before a block, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda *_, **__: None)
    tables = methods.METHODS, pair_functions.KERNELS
    before = [dict(table) for table in tables]
    import scanpy as sc
    from napari.components import ViewerModel

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)).astype(np.float32)
    adata = anndata.AnnData(X, obs=pd.DataFrame(index=[f"cell {i}" for i in range(60)]))
    labels = np.zeros((8, 8), int)
    yield {
        "X": X,
        "X_new": X[:3] + 1,
        "adata": adata,
        "sc": sc,
        "vectors": X,
        "texts": ["a text"] * len(X),
        "authors": ["somebody"] * len(X),
        "viewer": ViewerModel(),
        "sdata": SimpleNamespace(labels={"nuclei": labels}, tables={"table": adata}),
    }
    plt.close("all")
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


@pytest.mark.filterwarnings("ignore")  # a map of 60 rows, and what scanpy plots with
@pytest.mark.parametrize("code", blocks("python"))
def test_a_block_runs_when_it_is_pasted(code, reader, tmp_path):
    mapped = reader["adata"].copy()
    mapped.obsm["X_embedding_game"] = reader["X"][:, :2]
    mapped.obs["embedding_game_cluster"] = pd.Categorical(["1", "2"] * 30)
    mapped.write_h5ad(tmp_path / "covid_balf_counts_map.h5ad")
    (tmp_path / "pasted.py").write_text(code)
    runpy.run_path(str(tmp_path / "pasted.py"), reader)


@pytest.mark.parametrize("line", commands())
def test_a_command_of_the_documents_has_its_program_files_and_options(line):
    words = shlex.split(line.replace("\\", "/"), comments=True)
    words = words[words[0] == "sudo" :] if words else [""]
    program = Path(words[0]).name
    if program == "napari-embedding-game":
        cli._make_parser().parse_args(words[1:])
    elif program == "make":
        targets = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text(), re.M)
        assert set(words[1:]) <= set(" ".join(targets).split())
    elif program == "apt":
        known = (ROOT / "tools" / "system_libraries.sh").read_text()
        assert [word for word in words[2:] if word not in known] == []
    elif program == "pip" or words[1:3] == ["-m", "pip"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = re.findall(r"\[(.*?)\]", line)
        named = {extra for each in extras for extra in each.split(",")}
        assert named <= set(project["optional-dependencies"])
    elif program == "python" and words[1] != "-m":
        files = ROOT / words[1], ROOT / "benchmarks" / "shared.py"
        source = "".join(file.read_text() for file in files)
        options = [word for word in words if word.startswith("--")]
        assert [option for option in options if f'"{option}"' not in source] == []
