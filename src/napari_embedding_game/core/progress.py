"""A progress bar for a run, on one line of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from napari_embedding_game.core.snapshot import Snapshot


def yield_with_progress(
    snapshots: Iterable[Snapshot], is_shown: bool = True
) -> Iterator[Snapshot]:
    """Yield ``snapshots`` unchanged, and show a bar on stderr if ``is_shown``.

    The bar has no end while the number of iterations is unknown.
    """
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=not is_shown) as bar:
        game = bar.add_task("Iterations", total=None)
        for snapshot in snapshots:
            total = snapshot.n_iter or None
            bar.update(game, completed=snapshot.iteration, total=total)
            yield snapshot
