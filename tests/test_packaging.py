"""What a user gets: the plugin as wheel, as sdist and as editable install.

Wheel and editable install are each made in an empty environment that borrows only the
dependencies of the one running the tests, and asked by npe2, as napari asks, in a
process of its own.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from email.parser import Parser
from importlib.metadata import requires
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
WIDGETS = {
    "Map",
    "Teach",
    "Plate",
    "Reference",
    "Tracks",
}
CONDA = {
    "dask": "dask-core",
    "matplotlib": "matplotlib-base",
    "napari": "napari-base",
    "torch": "pytorch",
}
"""Names of distributions on conda-forge, where they are others."""
REPOSITORY = "https://github.com/napari-embedding-game/napari-embedding-game"

PROBE = """
import json, sys
from importlib.resources import files
from npe2 import PluginManager, cli

manager = PluginManager.instance()
manager.discover()
manifest = manager.get_manifest("napari-embedding-game")
contributed = manifest.contributions
found = {
    "package": str(files("napari_embedding_game")),
    "icon": files("napari_embedding_game.resources").joinpath("icon.svg").is_file(),
    "widgets": [widget.display_name for widget in contributed.widgets],
    "patterns": contributed.readers[0].filename_patterns,
    "samples": [sample.key for sample in contributed.sample_data],
    "readers of a table": sum(
        reader.plugin_name == manifest.name
        for reader in manager.iter_compatible_readers([sys.argv[1]])
    ),
}
print(json.dumps(found))
cli.validate(manifest.name)  # a window opens each entry
"""


def run(*command: str | Path, **variables: str) -> str:
    """Run a command to its end; its output if it succeeds, a failed test if not."""
    # Nothing of the checkout may leak in, and no import needs a display.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env = {**env, "QT_QPA_PLATFORM": "offscreen", **variables}
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=env
    )
    if done.returncode:
        pytest.fail(f"{command[:4]}:\n{done.stdout}{done.stderr}", pytrace=False)
    return done.stdout


def build(source: Path, kind: str, folder: Path) -> Path:
    """Build one distribution of the sources; the file that came out."""
    python = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}"]
    run(*python, "--outdir", folder, source)
    (built,) = folder.iterdir()
    return built


def install(folder: Path, *requirement: str | Path) -> Path:
    """Install into a new environment in ``folder``; that environment's Python."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    paths = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    # A path that a .pth file adds has its own .pth files ignored, so an editable
    # install in the borrowed environment stays out of sight.
    (site / "borrowed.pth").write_text("\n".join(borrowed))
    pip = [sys.executable, "-m", "pip", "--python", folder, "install", "--quiet"]
    alone = ["--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed"]
    run(*pip, *alone, *requirement)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked_sdist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))) as sdist:
        sdist.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


@pytest.fixture(scope="module")
def wheel_of_sdist(unpacked_sdist, tmp_path_factory):
    return build(unpacked_sdist, "wheel", tmp_path_factory.mktemp("wheel_of_sdist"))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "cells.csv"
    rows = [f"{i % 7},{i * i % 11},{i},{i % 2}" for i in range(30)]
    path.write_text("\n".join(["a,b,c,d", *rows]))
    return path


def test_napari_finds_an_editable_install(unpacked_sdist, tmp_path, table):
    python = install(tmp_path / "environment", "--editable", unpacked_sdist)

    *_, told, validated = run(python, "-c", PROBE, table).splitlines()
    found = json.loads(told)

    assert Path(found["package"]).is_relative_to(unpacked_sdist / "src")
    assert found["icon"]
    assert set(found["widgets"]) == WIDGETS
    assert {"*.h5ad", "*.csv", "*.npz"} <= set(found["patterns"])
    assert found["samples"] == ["digits", "pbmc", "tissue", "nuclei"]
    assert found["readers of a table"] == 1
    assert "valid!" in validated


@pytest.mark.skipif(
    sys.platform == "linux" and not os.environ.get("DISPLAY"), reason="needs a display"
)
def test_every_entry_of_the_manifest_opens_in_a_window(wheel, tmp_path, table):
    """The wheel of the sdist is the same, byte by byte: another test says so."""
    python = install(tmp_path / "environment", wheel)
    script = Path(__file__).with_name("manifest_in_window.py")
    platform = "xcb" if sys.platform == "linux" else os.environ.get("QT_QPA_PLATFORM")
    *_, told = run(
        python,
        script,
        table,
        QT_QPA_PLATFORM=platform or "",
        XDG_CACHE_HOME=str(table.parent),
        XDG_CONFIG_HOME=str(table.parent),
        XDG_STATE_HOME=str(table.parent),
    ).splitlines()
    found = json.loads(told)
    assert found["wrong"] == []
    titles = sorted(WIDGETS)
    assert found["docks"] == {
        "program": [f"{title} (napari-embedding-game)" for title in titles],
        "plugins menu": [f"{title} (Embedding Game)" for title in titles],
        "layers menu": ["Map (Embedding Game)"],
    }
    *samples, opened = found["data"]
    assert samples == ["digits", "pbmc", "tissue", "nuclei"]
    assert opened == "cells.csv"


@pytest.mark.parametrize("built", ["wheel", "wheel_of_sdist"])
def test_a_wheel_holds_manifest_and_resources_once(built, request):
    with ZipFile(request.getfixturevalue(built)) as archive:
        names = archive.namelist()
    resources = [path.name for path in (ROOT / "resources").iterdir()]
    assert names.count("napari_embedding_game/napari.yaml") == 1
    assert [names.count(f"napari_embedding_game/resources/{n}") for n in resources] == [
        1
    ] * len(resources)
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {
        "napari_embedding_game"
    }


@pytest.mark.parametrize("built", ["wheel", "wheel_of_sdist"])
def test_links_of_the_description_lead_to_files_of_the_repository(built, request):
    _, description = told_by(request.getfixturevalue(built))
    targets = re.findall(r"\]\(([^)]+)\)", description)
    pages = f"{REPOSITORY}/issues", f"{REPOSITORY}/actions/"
    ours = [
        target
        for target in targets
        if "napari-embedding-game" in target and not target.startswith(pages)
    ]
    assert len(ours) >= 8
    assert all(target.startswith("https://") for target in targets)
    for target in ours:
        where, _, _ = target.partition("#")
        way, path = re.fullmatch(f"{REPOSITORY}/(raw|blob)/main/(.+)", where).groups()
        assert (ROOT / path).is_file(), target
        assert (way == "raw") == path.endswith((".png", ".gif")), target


def test_a_stranger_finds_the_project(wheel):
    fields, _ = told_by(wheel)
    urls = dict(url.split(", ") for url in fields["Project-URL"])
    assert {
        *("Homepage", "Documentation", "Source", "Issues", "Changelog"),
        "User Support",
    } <= set(urls)
    assert all(url.startswith(REPOSITORY) for url in urls.values())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == fields["Version"][0]
    assert citation["repository-code"] == REPOSITORY
    assert len(citation["references"]) == 4


def test_types_and_version_are_there_for_other_packages(wheel):
    import napari_embedding_game

    with ZipFile(wheel) as archive:
        assert "napari_embedding_game/py.typed" in archive.namelist()
    fields, _ = told_by(wheel)
    assert "Typing :: Typed" in fields["Classifier"]
    assert napari_embedding_game.__version__ == fields["Version"][0]


def told_by(wheel: Path) -> tuple[dict[str, list[str]], str]:
    """Return the fields of a wheel's metadata, and the description."""
    with ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        message = Parser().parsestr(archive.read(name).decode())
    fields: dict[str, list[str]] = {}
    for key, value in message.items():
        fields.setdefault(key, []).append(value)
    return fields, message.get_payload()


def test_both_ways_to_a_wheel_give_the_same_files(wheel, wheel_of_sdist):
    assert wheel.name == wheel_of_sdist.name
    assert contents(wheel) == contents(wheel_of_sdist)


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_base_brings_no_qt_binding(wheel):
    with ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    base = [x for x in lines if x.startswith("Requires-Dist:") and "extra ==" not in x]
    assert any("napari" in requirement for requirement in base)
    assert not [x for x in base if "pyqt" in x.lower() or "pyside" in x.lower()]
    assert not [x for x in base if "napari[" in x]


def test_the_recipe_for_conda_asks_for_the_same(wheel):
    fields, _ = told_by(wheel)
    asked = [Requirement(line) for line in fields["Requires-Dist"]]
    base = {f"{CONDA.get(x.name, x.name)} {x.specifier}" for x in asked if not x.marker}
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text(encoding="utf-8"))
    run = set(recipe["requirements"]["run"])
    assert recipe["context"]["version"] == fields["Version"][0]
    assert base < run
    assert {line.split()[0] for line in run - base} == {"python", "pyside6", "scanpy"}


def test_each_package_that_the_tests_install_has_its_version_in_the_constraints():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0] for line in lines if not line.startswith("#")}
    ours = "napari-embedding-game"
    installed, asked = set(), [(ours, "test"), (ours, "all")]
    while asked:
        name, extra = asked.pop()
        if (name, extra) in installed:
            continue
        installed.add((name, extra))
        for line in requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                wanted = canonicalize_name(needed.name)
                asked += [(wanted, each) for each in ("", *needed.extras)]
    assert {name for name, _ in installed} - {ours} <= pinned
