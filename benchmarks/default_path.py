"""Whether the default path has become slower: this checkout beside an older one.

    git worktree add ../before f3319eb
    python benchmarks/default_path.py --data FOLDER --before ../before

Each is imported and fits the rows once with the defaults of the estimator on one
thread, in processes of their own, in turn.  Processor time, so that other programs
matter little; loops are compiled beforehand.  f3319eb is the last commit with one
method only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from shared import arguments, load, median, report

ROWS = 20_000
HERE = Path(__file__).resolve().parent.parent
PROGRAM = """
import sys, time
begin = time.process_time()
import numpy as np
from napari_embedding_game import EmbeddingGame
imported = time.process_time() - begin
X = np.load(sys.argv[1])
model = EmbeddingGame(random_state=0, n_jobs=1)
model.fit(X[:500])
begin = time.process_time()
model.fit(X)
print(imported, time.process_time() - begin)
"""


def times(checkout: Path, rows: Path) -> tuple[float, float]:
    """Return the seconds of the import and of the fit."""
    own = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(rows)]
    found = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    imported, fitted = map(float, found.stdout.split())
    return imported, fitted


def main() -> None:
    """Print the table."""
    before = {"type": Path, "required": True, "help": "an older checkout"}
    args = arguments(__doc__, repeats=5, before=before)
    data = load("mnist", args)
    if data is None:
        return
    ways = {"before": args.before, "now": HERE}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npy"
        np.save(rows, data.some(ROWS).X)
        for _ in range(args.repeats):
            for name, checkout in ways.items():
                found[name].append(times(checkout, rows))
    old = np.median([fit for _, fit in found["before"]])
    report(
        f"Default path, {min(ROWS, len(data.X)):,} rows",
        [
            {
                "checkout": name,
                "import, s": median([imported for imported, _ in each]),
                "fit, s": median([fit for _, fit in each]),
                "to before": float(np.median([fit for _, fit in each]) / old),
            }
            for name, each in found.items()
        ],
        args,
    )


if __name__ == "__main__":
    main()
