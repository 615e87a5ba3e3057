"""The engine is made ready before it is needed."""

import pytest

from napari_embedding_game.core.settings import Settings, resolve
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.session.run import engine


def test_warming_up_does_all_that_a_run_does(monkeypatch):
    done = []
    for step in ("neighbors", "layout", "play"):
        own = getattr(engine.CoreEngine, step)

        def noted(self, *args, own=own, step=step):
            result = own(self, *args)
            done.append((step, args))
            return result

        monkeypatch.setattr(engine.CoreEngine, step, noted)
    engine.warm_up()
    assert [step for step, _ in done] == ["neighbors", "layout", "play"]
    assert done[0][1][-1].affinity == resolve(Settings()).affinity


def test_a_failing_warm_up_leaves_no_lock(monkeypatch):
    def fail(*args):
        raise RuntimeError("no index")

    monkeypatch.setattr(engine.CoreEngine, "neighbors", fail)
    with pytest.raises(RuntimeError, match="no index"):
        engine.warm_up()
    assert not COMPUTING.locked()
