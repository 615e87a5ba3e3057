"""The process that reads files: light, warm, and itself again after a mishap."""

import gzip
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from subprocess import PIPE

import psutil
import pytest

from napari_embedding_game.data import reading_process
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import read_in_stages
from napari_embedding_game.data.reading_process import (
    read_in_process,
    start_reading_process,
)
from napari_embedding_game.data.stages import finish

LAUNCHER = """#!{0}
import ctypes, subprocess, sys
dies_too = lambda: ctypes.CDLL(None).prctl(1, 9)
sys.exit(subprocess.call(["{0}", *sys.argv[1:]], preexec_fn=dies_too))
"""
"""A python that starts another one, which dies with it."""


def told(expression):
    """Have the process work out an expression."""
    start_reading_process()
    return finish(read_in_process(expression, eval))


def test_it_stays_and_has_no_window():
    process = told("__import__('os').getpid()")
    assert process != os.getpid()
    modules = set(told("list(__import__('sys').modules)"))
    assert {"anndata", "h5py", "pandas"} <= modules
    assert modules.isdisjoint({"qtpy", "napari", "torch", "numba", "matplotlib"})
    print_there = "print('to nobody') or 5"
    assert told(print_there) == 5
    with pytest.raises(ZeroDivisionError):
        told("1 / 0")
    used = "__import__('psutil').Process().memory_info().rss"
    before, large = told(used), told("__import__('numpy').ones(2**24)")
    assert told(used) < before + large.nbytes // 2
    assert told("__import__('os').getpid()") == process


def test_a_new_one_comes_where_it_was_ended():
    process = told("__import__('os').getpid()")
    with pytest.raises(DataError, match="broke off"):
        told(f"__import__('os').kill({process}, {int(signal.SIGTERM)})")
    start_reading_process()
    reading = read_in_process("while_it_sleeps = __import__('time').sleep(600)", exec)
    next(reading)
    reading.close()
    assert told("__import__('os').getpid()") != process


ENDED = """
import threading
from napari_embedding_game.data.reading_process import (
    read_in_process, start_reading_process,
)
from napari_embedding_game.data.stages import finish
start_reading_process()
print(finish(read_in_process("__import__('os').getpid()", eval)))
is_begun = threading.Event()
def read():
    for stage in read_in_process("sum(range(10**12))", eval):
        is_begun.set()
threading.Thread(target=read, daemon=True).start()
is_begun.wait()
"""
"""A program that ends while a thread reads, and a library loops in C."""


def test_it_ends_with_its_program_though_it_loops():
    out = subprocess.run([sys.executable, "-c", ENDED], stdout=PIPE, check=True).stdout
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(int(out))
        for _ in range(200):  # the system takes a moment to end it
            if process.status() == psutil.STATUS_ZOMBIE:
                return
            time.sleep(0.1)
        process.kill()
        pytest.fail("it goes on")


def test_a_small_file_takes_no_memory_and_no_time_for_ever(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reading_process, "SPARE_BYTES", 1 << 27)
    grows = "bytearray(b'x') * 2**28, __import__('time').sleep(600)"
    (tmp_path / grows).touch()
    with pytest.raises(DataError, match="far more memory"):
        told(grows)
    monkeypatch.setattr(reading_process, "SPARE_SECONDS", 0.3)
    if sys.platform == "linux":  # as in an environment of Windows
        launcher = tmp_path / "python"
        launcher.write_text(LAUNCHER.format(sys.executable))
        launcher.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(launcher))
        with pytest.raises(DataError, match="broke off"):
            told("__import__('os')._exit(1)")
    loops = "sum(range(10**12))"  # in C, as a damaged file lets HDF5
    (tmp_path / loops).touch()
    with pytest.raises(DataError, match="memory or time than a file of its size"):
        told(loops)
    assert told("2 + 3") == 5
    # An honest table may be packed into a few hundredths of itself, or less.
    monkeypatch.setattr(reading_process, "SPARE_SECONDS", 0.0)
    monkeypatch.setattr(reading_process, "SECONDS_PER_BYTE", 1e-6)
    lines = b"a,b\n" + (b"1,2\n" * 200 + b"2,1\n") * 2_000
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(lines))
    reading = read_in_process(tmp_path / "a.csv.gz", read_in_stages, ReadOptions())
    assert finish(reading).dataset.X.shape == (402_000, 2)


def test_an_error_comes_back_whatever_was_its_cause(tmp_path):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "else").touch()
    start_reading_process()
    with pytest.raises(DataError, match=r"could not be read as a \.zarr folder"):
        finish(read_in_process(tmp_path / "a.zarr", read_in_stages, ReadOptions()))
    with pytest.raises(DataError, match="could not be read as a file or folder"):
        finish(read_in_process(tmp_path / ("a" * 300), read_in_stages, ReadOptions()))
