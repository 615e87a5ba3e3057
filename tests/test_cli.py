import json
import runpy
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import kneighbors_graph

import worlds
from napari_embedding_game import EmbeddingGame, cli
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError

CLUSTER, LANDMARK = "embedding_game_cluster", "embedding_game_landmark"
FEW = ["--max-iter", "5", "--n-neighbors", "5", "--n-landmarks", "10"]


@pytest.fixture
def run(command_line):
    return command_line


def one_sentence(result):
    """The message of an expected error: one line on stderr, exit code 2."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    lines = result.stderr.splitlines()
    assert lines[-1].startswith("Error: ")
    return lines[-1]


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    values = np.vstack([rng.normal(c, 1, (30, 3)) for c in (0, 9)])
    frame = pd.DataFrame(values, columns=["area", "depth", "red"])
    frame["type"] = ["B"] * 30 + ["T"] * 30
    frame.to_csv(tmp_path / "cells.csv", index=False)
    return tmp_path / "cells.csv"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.h5ad"


@pytest.mark.parametrize("dimensions", [1, 2])
def test_fit_by_another_method(run, table, out, dimensions):
    few = [*FEW, "--perplexity", 5, "--n-components", dimensions]
    result = run("fit", table, "--out", out, "--method", "tsne", *few)
    assert result.exit_code == 0, result.output
    written = anndata.read_h5ad(out)
    assert written.obsm["X_embedding_game"].shape == (60, dimensions)
    parameters = written.uns["embedding_game"]["parameters"]
    assert (parameters["method"], parameters["repulsion"]) == ("tsne", 1.0)


def test_fit_writes_the_map(run, table, out):
    result = run("fit", table, "--out", out, "--repulsion", 120, *FEW)
    assert result.exit_code == 0, result.output
    assert "60 points of cells.csv" in result.stdout
    assert "iteration 5 of 5" in result.stdout
    adata = anndata.read_h5ad(out)
    assert adata.obsm["X_embedding_game"].shape == (60, 2)
    assert np.isfinite(adata.obsm["X_embedding_game"]).all()
    assert adata.obs["type"].tolist() == ["B"] * 30 + ["T"] * 30
    parameters = adata.uns["embedding_game"]["parameters"]
    assert parameters["repulsion"] == 120.0
    assert parameters["n_neighbors"] == 5
    assert parameters["n_landmarks"] == 10
    assert parameters["random_state"] == 0
    assert parameters["affinity"] == "mixed"
    assert parameters["n_iter"] == 5
    assert not parameters["interrupted"]


def test_too_large_a_perplexity_is_told_in_a_sentence(run, table, out):
    result = run("fit", table, "-o", out, "--method", "tsne", "-q", *FEW)
    assert result.exit_code == 0, result.output
    assert "Warning: perplexity=30 needs at least 91 rows; with 60" in result.stderr


def test_fit_into_so_many_clusters(run, table, out):
    result = run("fit", table, "--out", out, "--n-clusters", 3, *FEW)
    assert result.exit_code == 0, result.output
    adata = anndata.read_h5ad(out)
    assert adata.obs[CLUSTER].nunique() == 3
    assert adata.obs[CLUSTER].value_counts().index[0] == "1"  # the largest
    assert adata.uns["embedding_game"]["parameters"]["n_clusters"] == 3
    told = one_sentence(run("fit", table, "-o", out, "--force", "--n-clusters", 0))
    assert "--n-clusters must be a whole number at least 1, not 0" in told


def test_fit_tells_programs_its_result_or_failure_in_one_line(run, table, out):
    result = run("fit", table, "--out", out, "--json", "--random-state", 3, *FEW)
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    record = anndata.read_h5ad(out).uns["embedding_game"]
    assert (facts["n_points"], facts["n_iter"], facts["random_state"]) == (60, 5, 3)
    assert (facts["map_hash"], facts["out"]) == (record["map_hash"], str(out))
    again = run("fit", table, "--out", out, "--json", *FEW)
    assert again.exit_code == 2
    assert again.stdout.count("\n") == 1
    assert json.loads(again.stdout)["error"].startswith(f"{out} exists: choose another")
    assert facts["version"] == record["versions"]["napari-embedding-game"]
    wrong = run("fit", table, "--json", "--n-clusters", "many")
    assert wrong.exit_code == 2
    message = "argument --n-clusters: invalid int value: 'many'"
    assert json.loads(wrong.stdout) == {"error": message}
    assert wrong.stderr == f"Error: {message}\n"


def test_fit_by_pca_says_that_there_is_no_pressure(run, table, out):
    result = run("fit", table, "--out", out, "--method", "pca", "--n-neighbors", 5)
    assert result.exit_code == 0, result.output
    assert "no pressure known" in result.stdout
    parameters = anndata.read_h5ad(out).uns["embedding_game"]["parameters"]
    assert (parameters["method"], parameters["affinity"]) == ("pca", "inner_products")


def test_fit_takes_the_players_steps_and_a_minimiser(run, table, tmp_path):
    maps, wanted = [], {"learning_rate": 0.2, "momentum": 0.5}
    steps = ["--learning-rate", 0.2, "--momentum", 0.5]
    landmarks = ["--landmark-learning-rate", 0.4]
    wanted |= {"landmark_learning_rate": 0.4}
    for name, options in (
        ("plain", []),
        ("own", [*steps, *landmarks]),
        ("down", ["--method", "ee_spectral_direction"]),
    ):
        path = tmp_path / f"{name}.h5ad"
        assert run("fit", table, "--out", path, *options, *FEW).exit_code == 0
        maps.append(anndata.read_h5ad(path))
    found = maps[1].uns["embedding_game"]["parameters"]
    assert {name: found[name] for name in wanted} == wanted
    down = maps[2].uns["embedding_game"]["parameters"]
    assert down["method"] == "ee_spectral_direction"
    first, *others = (one.obsm["X_embedding_game"] for one in maps)
    assert not any(np.array_equal(first, other) for other in others)


def test_fit_writes_the_clusters_that_the_window_shows(run, tmp_path):
    from sklearn.datasets import load_digits

    from napari_embedding_game.data.export.writers import write_result

    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "digits.npz", X=X[:600], y=y[:600])
    run("fit", tmp_path / "digits.npz", "-o", tmp_path / "cli.h5ad", "-q")
    session = worlds.session_of(worlds.read(tmp_path / "digits.npz"))
    worlds.play(session)
    write_result(session.dataset, session.to_result(), tmp_path / "window.h5ad")
    cli, window = (
        anndata.read_h5ad(tmp_path / name) for name in ("cli.h5ad", "window.h5ad")
    )
    assert len(cli.obs[CLUSTER].cat.categories) == len(
        window.obs[CLUSTER].cat.categories
    )
    assert (
        len(cli.obs[CLUSTER].cat.categories) < 20 < cli.obs[LANDMARK].nunique() <= 200
    )
    pd.testing.assert_series_equal(cli.obs[LANDMARK], window.obs[LANDMARK])
    sizes = [file.obs[CLUSTER].value_counts() for file in (cli, window)]
    pd.testing.assert_series_equal(*sizes)
    assert sizes[0].index[0] == "1"  # the largest
    pd.testing.assert_series_equal(cli.obs[CLUSTER], window.obs[CLUSTER])


def test_raw_counts_by_the_recipe(run, tmp_path, out):
    pytest.importorskip("scanpy", reason="the recipe is scanpy's")
    rng = np.random.default_rng(0)
    means = rng.gamma(0.5, 4.0, (2, 700)).repeat(60, axis=0)
    counts = tmp_path / "counts.h5ad"
    anndata.AnnData(rng.poisson(means).astype(np.float32)).write_h5ad(counts)
    advised = run("fit", counts, "--out", out, *FEW)
    assert advised.exit_code == 0, advised.output
    assert "looks like raw counts" in advised.stderr
    assert "--recipe does so." in advised.stderr
    result = run("fit", counts, "--out", out, "--recipe", "--force", *FEW)
    assert result.exit_code == 0, result.output
    assert "Recipe: counts normalised to 10,000 a cell" in result.stderr
    assert "looks like raw counts" not in result.stderr
    assert "(X, 50 principal components)" in result.stdout
    written = anndata.read_h5ad(out)
    recipe = written.uns["embedding_game"]["provenance"]["recipe"]
    assert (recipe["target_sum"], recipe["components"]) == (10_000, 50)
    assert np.isfinite(written.obsm["X_embedding_game"]).all()


def test_the_recipe_is_refused_for_what_is_no_counts(run, table, out):
    message = one_sentence(run("fit", table, "--out", out, "--recipe"))
    assert "holds no raw counts" in message


def test_neighbours_of_a_file_are_searched_by_no_other_distance(run, tmp_path, out):
    adata = anndata.AnnData(np.random.default_rng(0).normal(size=(60, 4)))
    adata.obsp["distances"] = kneighbors_graph(adata.X, 9, mode="distance")
    adata.write_h5ad(tmp_path / "near.h5ad")
    space = ["--space", "obsp['distances']", "--n-neighbors", 9]
    asked = run("fit", tmp_path / "near.h5ad", "--out", out, *space, *FEW)
    assert asked.exit_code == 0, asked.output
    by = ["--metric", "cosine", "--force"]
    message = one_sentence(
        run("fit", tmp_path / "near.h5ad", "--out", out, *space, *by)
    )
    assert "leave out --metric" in message


def test_of_a_file_with_two_arrays_the_first_is_told(run, tmp_path, out):
    rng = np.random.default_rng(0)
    two = {"rna": rng.normal(size=(60, 4)), "my protein": rng.normal(size=(60, 3))}
    path = tmp_path / "two.npz"
    np.savez(path, **two)
    told = run("fit", path, "--out", out, *FEW).stderr
    assert 'The array "rna" is embedded. It could also be my protein (60 x 3' in told
    chosen = ["--space", "my protein"]
    result = run("fit", path, "--out", out, "--force", *chosen, *FEW)
    assert "(my protein)" in result.stdout


@pytest.mark.parametrize(("options", "is_told"), [([], True), (["--quiet"], False)])
def test_quiet_tells_only_doubts_and_errors(run, table, out, options, is_told):
    few = [*FEW, "--space", "area,red", *options]
    result = run("fit", table, "--out", out, *few)
    assert result.exit_code == 0, result.output
    assert ("Embedded:" in result.stderr, "60 points" in result.stdout) == 2 * (
        is_told,
    )
    if not is_told:
        assert result.output == ""
    spoilt = run("fit", table, "--out", out, "--force", *few, "--learning-rate", 1e4)
    assert "Warning: The points have run far apart" in spoilt.stderr
    assert one_sentence(run("fit", table, "--out", out, *few)).endswith("--force.")


def test_three_dimensions_and_csv(run, table, tmp_path):
    out = tmp_path / "map.csv"
    options = ["--n-components", 3, "--space", "area,red", *FEW]
    result = run("fit", table, "--out", out, *options)
    assert result.exit_code == 0, result.output
    found = pd.read_csv(out, index_col="row")
    assert found.columns.tolist()[:3] == [f"embedding_game_{axis}" for axis in "xyz"]
    assert len(found) == 60
    assert "Embedded: 2 columns (area, red)" in result.stderr


def test_rows_with_missing_values(run, table, out):
    frame = pd.read_csv(table)
    frame.loc[11, "area"] = np.nan
    frame.to_csv(table, index=False)
    message = one_sentence(run("fit", table, "--out", out, *FEW))
    assert "row 12, column area" in message
    assert "--missing drop" in message
    result = run("fit", table, "--out", out, "--missing", "drop", *FEW)
    assert result.exit_code == 0, result.output
    assert "1 of 60 rows left out" in result.stderr
    adata = anndata.read_h5ad(out)
    assert adata.obs["embedding_game_cluster"].tolist()[11] == "unassigned"
    assert adata.n_obs == 60


def test_existing_result_is_kept_unless_forced(run, table, out):
    out.write_text("an earlier result")
    assert "exists: choose another name, or add --force" in one_sentence(
        run("fit", table, "--out", out, *FEW)
    )
    assert out.read_text() == "an earlier result"
    assert run("fit", table, "--out", out, "--force", *FEW).exit_code == 0
    assert "X_embedding_game" in anndata.read_h5ad(out).obsm


def test_input_is_kept_even_if_forced(run, table):
    before = table.read_bytes()
    message = one_sentence(run("fit", table, "--out", table, "--force", *FEW))
    assert "is the input itself" in message
    assert table.read_bytes() == before


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("nowhere/out.h5ad", "does not exist: make it"),
        ("out.png", "has to end in .h5ad"),
        ("folder.h5ad", "is a folder"),
    ],
)
def test_results_that_cannot_be_written_are_told_before(
    run, table, tmp_path, monkeypatch, target, sentence
):
    (tmp_path / "folder.h5ad").mkdir()
    monkeypatch.setattr(EmbeddingGame, "play", lambda *_: pytest.fail("it computed"))
    assert sentence in one_sentence(run("fit", table, "--out", tmp_path / target))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "cells.csv is empty"),
        ("a,b\n" + "1,2\n" * 30, "cells.csv is constant"),
    ],
)
def test_data_that_gives_no_map(run, table, out, content, sentence):
    table.write_text(content)
    assert sentence in one_sentence(run("fit", table, "--out", out))
    assert not out.exists()


def test_fewer_rows_than_neighbours(run, table, out):
    table.write_text("a,b\n1,2\n3,4\n5,9\n")
    message = one_sentence(run("fit", table, "--out", out))
    assert "3 rows" in message
    assert "need at least 16" in message


def test_missing_and_unknown_files(run, tmp_path, out):
    assert "does not exist" in one_sentence(run("fit", "no.csv", "--out", out))
    message = one_sentence(run("export", "no.h5ad", out.with_suffix(".html")))
    assert "does not exist" in message
    (tmp_path / "a.txt").write_text("a")
    message = one_sentence(run("fit", tmp_path / "a.txt", "--out", out))
    assert "cannot be read: the name has to end in" in message


@pytest.mark.parametrize(
    "options",
    [
        ["--repulsion", "0"],
        ["--landmark-learning-rate", "inf"],
        ["--n-components", "4"],
        ["--schedule", "slow"],
        ["--method", "ee_homotopy", "--approximation", "landmarks"],
        ["--method", "given"],
        ["--n-jobs", "0"],
    ],
)
def test_settings_that_cannot_be_used(run, table, out, options):
    one_sentence(run("fit", table, "--out", out, *FEW, *options))
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit"],
        ["fit", "cells.csv"],
        ["fit", "cells.csv", "--out", "o.h5ad", "--missing", "fill"],
        ["fit", "cells.csv", "--out", "o.h5ad", "--update", "none"],
        ["--sample", "cifar"],
        ["no-such-command"],
    ],
)
def test_wrong_arguments(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Error" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("asked", [["--sample", "digits"], ["--quit-after-run"]])
def test_options_of_the_window_go_with_no_command(run, table, out, asked):
    message = one_sentence(run(*asked, "fit", table, "--out", out, *FEW))
    assert "go with no command" in message
    assert not out.exists()


def interrupt_after(monkeypatch, n_snapshots):
    from napari_embedding_game.core.live_run import Run

    whole, seen = Run.advance, []

    def interrupted(self, *, look=False):
        if look:  # at the end, once more
            return whole(self, look=True)
        if len(seen) == n_snapshots:
            raise KeyboardInterrupt
        seen.append(whole(self))
        return seen[-1]

    monkeypatch.setattr(Run, "advance", interrupted)


def test_ctrl_c_keeps_the_last_layout(run, table, out, monkeypatch):
    interrupt_after(monkeypatch, 1)
    result = run("fit", table, "--out", out)
    assert result.exit_code == 130
    assert "Stopped early" in result.stderr
    adata = anndata.read_h5ad(out)
    assert np.isfinite(adata.obsm["X_embedding_game"]).all()
    assert adata.uns["embedding_game"]["parameters"]["interrupted"]


def test_ctrl_c_before_the_first_layout(run, table, out, monkeypatch):
    interrupt_after(monkeypatch, 0)
    result = run("fit", table, "--out", out)
    assert result.exit_code == 130
    assert "nothing written" in result.stderr
    assert not out.exists()


@pytest.fixture
def launched(monkeypatch):
    """Calls of the window, which is not opened."""
    calls = []

    def launch(sample, **options):
        calls.append((sample, options))
        return 0

    window = types.ModuleType("napari_embedding_game.ui.app")
    window.launch = launch
    monkeypatch.setitem(sys.modules, "napari_embedding_game.ui.app", window)
    return calls


def test_no_argument_opens_the_window(run, launched):
    assert run().exit_code == 0
    assert launched == [
        (
            None,
            {"path": None, "screenshot": None, "out": None, "quit_after_run": False},
        )
    ]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_torch_is_loaded_before_the_window_where_it_has_to_be(platform, monkeypatch):
    path = Path(cli.__file__).parent / "ui" / "app.py"
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    assert ("torch" in runpy.run_path(str(path))) == (platform == "win32")


def test_without_qt_there_is_no_window(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "qtpy.QtWidgets", None)
    assert "pip install" in one_sentence(run())


def test_window_options(run, launched, tmp_path, table):
    options = ["--screenshot", tmp_path / "a.png", "--out", tmp_path / "a.h5ad"]
    result = run("--file", table, *options, "--quit-after-run")
    assert result.exit_code == 0, result.output
    assert launched == [
        (
            None,
            {
                "path": table,
                "screenshot": tmp_path / "a.png",
                "out": tmp_path / "a.h5ad",
                "quit_after_run": True,
            },
        )
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sample", "digits", "--file", "cells.csv"],
        ["--file", "no-such-file.csv"],
        ["--sample", "digits", "--screenshot", "no-such-folder/a.png"],
        ["--sample", "digits", "--out", "no-such-folder/a.h5ad"],
    ],
)
def test_window_is_not_opened_for_what_cannot_work(run, launched, arguments):
    one_sentence(run(*arguments))
    assert launched == []


@pytest.mark.parametrize("error", [DataError, InputError])
def test_errors_of_the_window_are_sentences(run, launched, monkeypatch, error):
    def fail(*args, **options):
        raise error("No connection.")

    window = sys.modules["napari_embedding_game.ui.app"]
    monkeypatch.setattr(window, "launch", fail)
    assert one_sentence(run("--sample", "pbmc")) == "Error: No connection."


@pytest.mark.parametrize("command", [[], ["fit"], ["reproduce"]])
def test_help_and_out_have_a_letter(run, command):
    shown = run(*command, "-h")
    assert shown.exit_code == 0
    assert shown.stdout == run(*command, "--help").stdout
    assert "-o OUT, --out OUT" in shown.stdout
    assert "--quiet" in shown.stdout or not command
    assert "given" not in shown.stdout  # a method that needs a map


def test_version(run):
    from importlib import metadata

    shown = run("--version")
    assert shown.exit_code == 0
    assert shown.stdout.strip() == metadata.version("napari-embedding-game")


def test_command_ends_without_traceback(tmp_path):
    command = [sys.executable, "-m", "napari_embedding_game.cli", "fit", "no.csv"]
    ended = subprocess.run(
        [*command, "--out", str(Path(tmp_path, "o.h5ad"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == (
        "Error: no.csv does not exist: check the name and the folder.\n"
    )


# replay


@pytest.fixture
def session_file(table, tmp_path):
    """A session on the table: steered once, one cluster named."""
    from napari_embedding_game.session.file import archive
    from napari_embedding_game.session.file.saved_map import SavedSession

    few = {"n_neighbors": 5, "n_landmarks": 10, "max_iter": 40}
    session = worlds.session_of(worlds.read(table), **few)
    run = session.begin()
    for frame in run.iter_progress():
        session.receive_frame(run, frame)
        if frame.snapshot and 0 < frame.snapshot.iteration < 40:
            session.settings.repulsion = 150.0
        if frame.snapshot and frame.snapshot.finished:
            session.stop()
    session.clusters.rename(session.clusters.clusters[0].id, "B cells")
    path = tmp_path / "work.zip"
    archive.save_session(SavedSession(maps=(session.to_saved_map(),)), path)
    return path


def test_a_session_is_written_as_code(run, session_file, tmp_path):
    path = tmp_path / "map.ipynb"
    result = run("notebook", session_file, path)
    assert result.exit_code == 0, result.output
    table = path.with_name("map_cells.csv")
    assert result.stdout == f"Written: {path}\nWritten: {table}\n"
    code = path.read_text().replace('\\"', '"')
    assert f'read("{session_file.with_name("cells.csv").name}")' in code
    assert "tl.embedding_game(" in code
    assert "exists" in one_sentence(run("notebook", session_file, path))
    result = run("notebook", session_file, path, "--force", "--quiet")
    assert (result.exit_code, result.stdout) == (0, "")


def test_code_of_what_is_no_map(run, table, session_file, tmp_path):
    path = tmp_path / "map.ipynb"
    assert "none.zip" in one_sentence(run("notebook", tmp_path / "none.zip", path))
    table.unlink()
    assert "is missing" in one_sentence(run("notebook", session_file, path))
    assert not path.exists()


def test_replay_gives_the_same_map(run, session_file):
    result = run("replay", session_file)
    assert result.exit_code == 0, result.output
    assert "steered 1 time: the same map, bit for bit" in result.stdout
    quiet = run("replay", session_file, "-q")
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_replay_tells_another_map_and_the_versions_that_wrote_it(
    run, session_file, monkeypatch
):
    from napari_embedding_game.session.file import archive

    saved = archive.load_session(session_file)
    written = archive.find_installed_versions()
    saved.maps[0].snapshot.embedding[0, 0] += 1e-6
    old = written | {"numpy": "1.0"}
    with monkeypatch.context() as former:
        former.setattr(archive, "find_installed_versions", lambda: old)
        archive.save_session(saved, session_file)
    result = run("replay", session_file)
    assert result.exit_code == 1
    told = result.stdout
    here = written["numpy"]
    assert (
        f"ANOTHER map than recorded. The file was written by numpy 1.0 (here {here})."
        in told
    )


def test_replay_without_its_data(run, session_file, table):
    table.unlink()
    assert "cells.csv is missing" in one_sentence(run("replay", session_file))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cells.csv", "is no session, but a table"),
        ("plain.h5ad", "but a file of AnnData that holds no saved map"),
        ("other.zip", "but a .zip file of other things"),
    ],
)
def test_what_is_no_session_is_named_and_not_called_damaged(run, table, name, kind):
    path = table.with_name(name)
    if path.suffix == ".h5ad":
        anndata.AnnData(np.ones((3, 2), np.float32)).write_h5ad(path)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("letter.txt", "Dear cell")
    for command in (["replay", path], ["notebook", path, path.with_name("x.ipynb")]):
        told = one_sentence(run(*command))
        assert kind in told
        assert "damaged" not in told
