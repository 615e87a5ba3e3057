"""What a user gets: the plugin as wheel, as sdist and as editable install.

Each is installed into an empty environment that borrows only the dependencies of
the one running the tests, and asked by npe2, as napari asks, in a process of its own.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]

PROBE = """
import json, sys
from importlib.resources import files
from npe2 import PluginManager, cli
from npe2.io_utils import read

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
    "layers of digits": len(manager.commands.execute(f"{manifest.name}.open_digits")),
    "layers of a table": len(
        read([sys.argv[1]], stack=False, plugin_name=manifest.name)
    ),
}
print(json.dumps(found))
cli.validate(manifest.name, imports=True)
"""


def run(*command: str | Path) -> str:
    """Run a command to its end; its output if it succeeds, a failed test if not."""
    # Nothing of the checkout may leak in, and no import needs a display.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env["QT_QPA_PLATFORM"] = "offscreen"
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


@pytest.fixture(scope="module", params=["wheel", "sdist", "editable"])
def installed(request, tmp_path_factory):
    """The Python of an environment with the plugin, and where its package must be."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "wheel":
        return install(folder, request.getfixturevalue("wheel")), folder
    if request.param == "sdist":
        return install(folder, request.getfixturevalue("wheel_of_sdist")), folder
    source = request.getfixturevalue("unpacked_sdist")
    return install(folder, "--editable", source), source / "src"


def test_napari_finds_the_plugin_and_it_works(installed, tmp_path):
    python, place = installed
    table = tmp_path / "cells.csv"
    rows = [f"{i % 7},{i * i % 11},{i},{i % 2}" for i in range(30)]
    table.write_text("\n".join(["a,b,c,d", *rows]))

    *_, told, validated = run(python, "-c", PROBE, table).splitlines()
    found = json.loads(told)

    assert Path(found["package"]).is_relative_to(place)
    assert found["icon"]
    assert found["widgets"] == ["Embedding Game", "Embedding Game Inspector"]
    assert {"*.h5ad", "*.csv", "*.npz"} <= set(found["patterns"])
    assert found["samples"] == ["digits", "pbmc", "nuclei", "mnist"]
    assert found["layers of digits"] > 0
    assert found["layers of a table"] > 0
    assert "valid!" in validated


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


def test_both_ways_to_a_wheel_give_the_same_files(wheel, wheel_of_sdist):
    with ZipFile(wheel) as one, ZipFile(wheel_of_sdist) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


def test_the_base_brings_no_qt_binding(wheel):
    with ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    base = [x for x in lines if x.startswith("Requires-Dist:") and "extra ==" not in x]
    assert any("napari" in requirement for requirement in base)
    assert not [x for x in base if "pyqt" in x.lower() or "pyside" in x.lower()]
    assert not [x for x in base if "napari[" in x]


@pytest.mark.parametrize("extra", ["base", "all"])
def test_leiden_comes_only_with_its_extra(wheel, extra):
    with ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    brought = [x for x in lines if x.startswith("Requires-Dist:")]
    chosen = [x for x in brought if "extra ==" not in x or f"'{extra}'" in x]
    assert len(chosen) > 10
    assert not [x for x in chosen if "igraph" in x or "leiden" in x]
