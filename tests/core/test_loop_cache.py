"""Machine code of loops that several processes compile at once: each finds its own."""

import gc
import importlib.util
import sys

import numba
import pytest

from napari_embedding_game.core import loop_cache

LOOP = """
def double(x):
    return x + x
"""


@pytest.fixture
def import_loop(tmp_path, monkeypatch):
    """Import the loop anew, as another process would: its cache is on the disk."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    path = tmp_path / "loops.py"
    path.write_text(LOOP)

    def decorated(njit):
        spec = importlib.util.spec_from_file_location("loops", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "loops", module)  # cached code asks for it
        spec.loader.exec_module(module)
        return njit(cache=True)(module.double)

    return decorated


def compile_at_once(one, other):
    """Compile two signatures: the index is read by the other before it is written."""
    first, second = one._cache._cache_file, other._cache._cache_file
    save_data, second._load_index = first._save_data, dict

    def compile_other_and_save(*what):
        other(1.5)
        save_data(*what)

    first._save_data = compile_other_and_save
    one(1)


@pytest.mark.parametrize(
    ("njit", "found"), [(loop_cache.njit, 3.0), (numba.njit, 2)], ids=["ours", "numba"]
)
def test_two_processes_that_compile_at_once_find_their_own_code(
    import_loop, njit, found
):
    """numba takes whole numbers' code for fractions: else this module can go."""
    compile_at_once(import_loop(njit), import_loop(njit))
    assert import_loop(njit)(1.5) == found
    assert import_loop(njit)(1) == 2


def test_entries_of_both_processes_are_kept_and_those_of_former_versions_go(
    import_loop, tmp_path
):
    import_loop(loop_cache.njit)(1)
    import_loop(loop_cache.njit)(1.5)
    gc.collect()  # the first two loops are freed
    later = import_loop(loop_cache.njit)
    assert (later(1), later(1.5)) == (2, 3.0)
    assert sum(later.stats.cache_hits.values()) == 2
    (tmp_path / "loops.py").write_text(f"{LOOP}\n# another version\n")
    assert import_loop(loop_cache.njit)(1.5) == 3.0
    assert len(list(tmp_path.rglob("*.nbc"))) == 1


def test_without_a_lock_or_a_place_loops_are_compiled_all_the_same(
    import_loop, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop_cache, "LOCK_SECONDS", 0.0)
    filelock = pytest.importorskip("filelock")
    (tmp_path / "__pycache__").mkdir(exist_ok=True)
    with filelock.FileLock(tmp_path / "__pycache__" / loop_cache.LOCK):
        assert import_loop(loop_cache.njit)(1) == 2
    assert sum(import_loop(loop_cache.njit).stats.cache_hits.values()) == 0
    full = import_loop(loop_cache.njit)

    def refuse(*what):
        raise OSError("No space left on device")

    full._cache._cache_file._save_data = refuse
    assert full(1.5) == 3.0
