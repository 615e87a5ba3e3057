"""Let the n-th call of the system fail while a file is written, for all n; then kill.

    python tests/fault_sweep.py [.zip .ipynb]    # Linux, with a C compiler

Each form of file that ``session/test_faults.py`` writes is written again and
again.  Each time one more call fails: each read, write, fsync or rename of a file in
the folder, below Python, so that those of HDF5 and Arrow are among them.  Then a
process is killed by ``kill -9`` instead of the call, and one more writes after it.
Session and .h5ad files are opened in the same way.  Prints a table, and ends with an
error where a file was neither the old nor the new one, or no sentence was said.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.loading import load
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.file import archive
from session.test_faults import BEFORE, ENDINGS, assert_is_whole, played, writer_of

LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
static char folder[4096];
static int kind = -1, kills, left;
/* Kinds: 0 read, 1 write, 2 fsync, 3 rename.  Returns the calls that were left. */
int fault_arm(const char *path, int of, int number, int kill9) {
  int before = left;
  strncpy(folder, path, sizeof folder - 1);
  kind = of; left = number; kills = kill9;
  return before;
}
static int fails(int of, const char *path) {
  if (of != kind || strncmp(path, folder, strlen(folder)) || left-- != 0) return 0;
  if (kills) kill(getpid(), SIGKILL);
  errno = of == 0 ? EIO : ENOSPC;
  return 1;
}
static int fails_at(int of, int fd) {
  char name[64], path[4096];
  if (of != kind) return 0;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(name, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return fails(of, path);
}
#define CALL(of, type, name, at, parameters, ...) type name parameters { \
  static type (*real) parameters; \
  if (!real) real = dlsym(RTLD_NEXT, #name); \
  return at ? -1 : real(__VA_ARGS__); }
#define ON_FD(of, type, name, parameters, ...) \
  CALL(of, type, name, fails_at(of, fd), parameters, __VA_ARGS__)
ON_FD(0, ssize_t, read, (int fd, void *b, size_t n), fd, b, n)
ON_FD(0, ssize_t, pread, (int fd, void *b, size_t n, off_t o), fd, b, n, o)
ON_FD(0, ssize_t, pread64, (int fd, void *b, size_t n, off_t o), fd, b, n, o)
ON_FD(1, ssize_t, write, (int fd, const void *b, size_t n), fd, b, n)
ON_FD(1, ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), fd, b, n, o)
ON_FD(1, ssize_t, pwrite64, (int fd, const void *b, size_t n, off_t o), fd, b, n, o)
ON_FD(1, int, ftruncate, (int fd, off_t n), fd, n)
ON_FD(1, int, ftruncate64, (int fd, off_t n), fd, n)
ON_FD(2, int, fsync, (int fd), fd)
ON_FD(2, int, fdatasync, (int fd), fd)
CALL(3, int, rename, fails(3, b), (const char *a, const char *b), a, b)
"""
KINDS = ("read", "write", "fsync", "rename")
FAILS, KILLS = 0, 1


OPENERS = {".zip": archive.load, ".h5ad": lambda path: finish(load(path))}


class Faults:
    """Lets one of the calls in a folder fail, or be the last one of a process."""

    def __init__(self, folder: Path) -> None:
        self._arm = ctypes.CDLL(os.environ["LD_PRELOAD"]).fault_arm
        self.folder = folder
        self.error: DataError | None = None
        """The sentence that was said last."""

    def fails(self, kind: int, n: int, act: Callable[[], object]) -> bool:
        """Let the n-th call of a kind fail in something; False where it has fewer."""
        self.error = None
        self._arm(os.fsencode(self.folder), kind, n, FAILS)
        try:
            act()
        except DataError as error:
            self.error = error
        finally:
            left = self._arm(b"", -1, 0, FAILS)
        return left < 0

    def kills(self, kind: int, n: int, act: Callable[[], object]) -> bool:
        """Kill a process at the n-th call; False where it comes to its end."""
        child = os.fork()
        if not child:
            self._arm(os.fsencode(self.folder), kind, n, KILLS)
            act()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGKILL), status
        return status == signal.SIGKILL


def sweep(ending: str, write: Callable[[Path], object], faults: Faults) -> list[str]:
    """Return the row of the table for one form of file."""
    path, n_calls, found = faults.folder / f"map{ending}", [], Counter()
    for kind, end in itertools.product(range(len(KINDS)), (FAILS, KILLS)):
        for n in itertools.count():
            path.write_bytes(BEFORE)
            happens = faults.kills if end is KILLS else faults.fails
            if not happens(kind, n, lambda: write(path)):
                break
            is_old = path.read_bytes() == BEFORE
            if not is_old:
                assert_is_whole(path)
            found[end, is_old] += 1
            if end is KILLS:
                write(path)  # the next try
                assert_is_whole(path)
            assert not list(faults.folder.glob(".*")), list(faults.folder.glob(".*"))
        if end is FAILS:
            n_calls.append(n)
        write(path)
        assert_is_whole(path)
    told = (f"{found[end, True]}, {found[end, False]}" for end in (FAILS, KILLS))
    return [f"`{path.name}`", *map(str, n_calls), *told]


def sweep_opening(ending: str, write: Callable[[Path], object], faults: Faults) -> str:
    """Return how many reads can fail while a file is opened: each is a sentence."""
    path = faults.folder / f"map{ending}"
    write(path)
    n_sentences = 0
    for n in itertools.count():
        if not faults.fails(0, n, lambda: OPENERS[ending](path)):
            return f"Opening `{path.name}`: {n} reads, {n_sentences} sentences."
        n_sentences += faults.error is not None


def main() -> None:
    """Sweep all forms of file and print the table."""
    rows = np.random.default_rng(0).normal(size=(200, 5))
    with tempfile.TemporaryDirectory() as elsewhere, tempfile.TemporaryDirectory() as d:
        session, tree = played(worlds.rows(rows))
        write = writer_of(session, tree, Path(elsewhere))
        faults = Faults(Path(d).resolve())
        print("| file |", " | ".join(KINDS), "| fails: old, new | killed: old, new |")
        print("|---" * (len(KINDS) + 3) + "|")
        for ending in sys.argv[1:] or ENDINGS:
            print(f"| {' | '.join(sweep(ending, write, faults))} |", flush=True)
        for ending in OPENERS:
            print(sweep_opening(ending, write, faults), flush=True)


def under_the_library() -> None:
    """Compile the library, and begin again with it below Python."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "faults.so"
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"]
        subprocess.run(command, input=LIBRARY, text=True, check=True)
        env = {**os.environ, "LD_PRELOAD": str(library)}
        sys.exit(subprocess.call([sys.executable, *sys.argv], env=env))


if __name__ == "__main__":
    main() if "LD_PRELOAD" in os.environ else under_the_library()
