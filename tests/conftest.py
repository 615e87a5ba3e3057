"""A small dataset, and an engine of which every step can be held or broken."""

import gc
import importlib
import io
import os
import threading
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from approved import check
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.inspect.clusters import build_merge_tree
from napari_embedding_game.core.snapshot import Snapshot, Steer
from napari_embedding_game.data import reading_process
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge


@pytest.fixture(autouse=True)
def autosave_folder(tmp_path_factory, monkeypatch):
    """A folder for what is saved on the quiet, instead of the user's own."""
    folder = tmp_path_factory.mktemp("autosave")
    monkeypatch.setenv("NAPARI_EMBEDDING_GAME_AUTOSAVE", str(folder))
    return folder


@pytest.fixture
def command_line():
    """The console command, as a function of what is written after its name."""
    return _command


def _command(*arguments):
    from napari_embedding_game import cli

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        cli.main([str(each) for each in arguments])
    told = {"stdout": out.getvalue(), "stderr": err.getvalue()}
    return SimpleNamespace(
        exit_code=ended.value.code or 0, output="".join(told.values()), **told
    )


LONGEST = (
    "test_any_machine",
    "test_neighbors",
    "test_packaging",
    "test_random_user",
    "test_scene",
    "test_tutorials",
    "test_pyside6",
    "test_example_notebooks",
    "test_new_rows",
    "test_reproductions",
    "test_file",
    "test_faults",
    "test_large_fit",
)
"""Files that take longest, in seconds; the processes then end at the same time."""
WINDOWS = Path(__file__).parent / "ui"


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Let garbage wait until all is imported, and never look through that again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 50)  # compilers and windows make much, and no circles


def pytest_collection_modifyitems(items):
    """Begin with what takes longest: a file is tested by one of the processes."""

    def place(item):
        name = item.path.stem
        if name in LONGEST:
            return LONGEST.index(name)
        return len(LONGEST) + (not item.path.is_relative_to(WINDOWS))

    items.sort(key=place)


def pytest_addoption(parser):
    """Where torch cannot be had without gigabytes, the rest is tested without it."""
    parser.addoption(
        "--without-torch", action="store_true", help="skip the tests that need torch"
    )
    parser.addoption(
        "--approve", action="store_true", help="write the files of tests/approved anew"
    )


@pytest.fixture
def approve(request):
    """Compare lines with those of a file of ``tests/approved``, or write these anew."""
    return partial(check, is_approved=request.config.option.approve)


def pytest_configure(config):
    # Torch's threads wait for their next loop without computing: three processes on a
    # few cores took three times as long.  It is read when torch is first imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Threads of OpenBLAS compute while they wait for one another: on busy cores twenty
    # eigendecompositions of 300 rows took 8 seconds of the processor, with one thread
    # 0.2.  numpy reads it when it is imported: for the processes of xdist, and those
    # that tests start.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """With ``--without-torch`` a file that cannot be imported without it is skipped."""
    report = yield
    is_torch = report.failed and "No module named 'torch'" in str(report.longrepr)
    if is_torch and collector.config.option.without_torch:
        report.outcome = "skipped"
        report.longrepr = str(collector.path), 0, "Skipped: needs torch"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    with _without_torch(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with _without_torch(item):
        return (yield)


@contextmanager
def _without_torch(item):
    """With ``--without-torch`` a test that needs torch is skipped, no other."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name == "torch" and item.config.option.without_torch:
            pytest.skip("needs torch")
        raise


@pytest.fixture
def read_here(monkeypatch):
    """Read files in this process, which knows what a test has changed."""
    monkeypatch.setattr(reading_process, "has_window", threading.Event())


@pytest.fixture
def torch():
    """For tests that need it in another thread, where its absence is not seen."""
    return importlib.import_module("torch")


def snapshot(
    iteration=0, n_iter=50, n_points=40, n_landmarks=4, n_components=2, **changes
):
    """Points on a circle that grows with the iteration, landmarks on its rim.

    In three dimensions the circle is bent like a saddle.
    """
    angle = np.linspace(0, 2 * np.pi, n_points, endpoint=False)
    circle = np.column_stack([np.cos(angle), np.sin(angle)]) * (4 + iteration / 10)
    if n_components == 3:
        circle = np.column_stack([circle, circle[:, 0] * circle[:, 1] / 5])
    every = max(n_points // n_landmarks, 1)
    labels = np.minimum(np.arange(n_points) // every, n_landmarks - 1)
    pressure = np.where(np.arange(n_points) % 4 == 0, 0.5, 0.0)
    values = {
        "iteration": iteration,
        "n_iter": n_iter,
        "embedding": circle.astype(np.float32),
        "landmarks": circle[every // 2 :: every][:n_landmarks].astype(np.float32),
        "energy": 1000.0 / (1 + iteration),
        "labels": labels.astype(np.int32),
        "pressure": pressure.astype(np.float32),
        "stretch": np.where(np.arange(n_points) % 20 == 3, 8.0, 1.0).astype(np.float32),
        "neighbors": ring(n_points),
        "finished": iteration >= n_iter,
    }
    return Snapshot(**(values | changes))


def ring(n_points):
    """Return the two beside each point on the circle; those of 3 and 23 lie across."""
    places = np.arange(n_points)
    beside = (places[:, None] + [-1, 1]) % n_points
    beside[3::20] = ((places + n_points // 2) % n_points)[3::20, None]
    return beside.astype(np.int32)


class FakeEdges:
    """The same edges for each share of the second space, with its rows."""

    def __init__(self, second_X):
        self.second_X = second_X

    def mix_by_share(self, share):
        return self


class FakeEngine:
    """Plays 5 frames of 10 iterations; ``fail_at`` breaks at an iteration.

    ``gate`` holds the neighbour search and every frame when it is cleared.
    """

    def __init__(self, fail_at=None, error=None, warning="", remedy=None):
        self.fail_at = fail_at
        self.error = error or RuntimeError("out of numbers")
        self.warning = warning
        self.remedy = remedy or {}
        self.gate = threading.Event()
        self.gate.set()
        self.games = []
        self.closed = 0

    def find_neighbors(self, X, settings):
        self.gate.wait(60)
        return "graph"

    def make_edges_and_layout(self, graph, X, settings, warm_start=None, second_X=None):
        layout = np.zeros((X.shape[0], settings.n_components), np.float32)
        return FakeEdges(
            second_X
        ), layout if warm_start is None else warm_start.embedding

    def merge_landmarks(self, edges, labels, n_landmarks, previous):
        """Every landmark beside the next."""
        n = max(n_landmarks, 2)
        graph = sp.diags([1.0, 9.0, 1.0], [-1, 0, 1], shape=(n, n)).tocsr()
        sizes = np.bincount(labels, minlength=n)
        graph, sizes = graph[:n_landmarks, :n_landmarks], sizes[:n_landmarks]
        return LandmarkMerge(graph, build_merge_tree(graph, sizes))

    def play_game(self, edges, layout, settings, warm_start=None):
        iteration, n_iter, n_points = 0, 50, len(layout)
        self.games.append(settings)
        try:
            while True:
                self.gate.wait(60)
                if iteration == self.fail_at:
                    raise self.error
                is_warm = warm_start is not None and not iteration
                sent = yield snapshot(
                    iteration,
                    n_iter,
                    n_points,
                    min(self.games[-1].n_landmarks, 4),
                    layout.shape[1],
                    warning=self.warning,
                    remedy=self.remedy,
                    **self._undefined(n_points),
                    **({"embedding": layout} if is_warm else {}),
                )
                if sent is not None:
                    told = sent.settings if isinstance(sent, Steer) else sent
                    self.games.append(told or self.games[-1])
                    n_iter = max(n_iter, iteration + 20)
                elif iteration >= n_iter:
                    return
                iteration += 10
        finally:
            self.closed += 1

    def _undefined(self, n_points):
        """Return what a snapshot has where the method does not define pressure."""
        if get_method(self.games[-1].method).has_pressure:
            return {}
        return {"pressure": np.full(n_points, np.nan, np.float32)}


@pytest.fixture
def dataset():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)).astype(np.float32)
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(["B", "T"] * 20),
            "counts": np.linspace(100.0, 900.5, 40),
        },
        index=[f"cell{i}" for i in range(40)],
    )
    return Dataset.from_rows(
        name="cells", X=X, obs=obs, var_names=list("abcde"), space="X"
    )


@pytest.fixture
def engine():
    return FakeEngine()


@pytest.fixture
def make_snapshot():
    return snapshot
