import signal
import subprocess
import sys

import pytest

from napari_embedding_game.core.interrupts import delay_interrupts

FIT_AFTER_CTRL_C = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from napari_embedding_game import EmbeddingGame

def press_while_torch_loads():
    while "torch.nn" not in sys.modules:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)

X = np.random.default_rng(0).normal(size=(60, 4))
model = EmbeddingGame(n_neighbors=5, n_landmarks=5, max_iter=5, random_state=0)
threading.Thread(target=press_while_torch_loads, daemon=True).start()
try:
    model.fit(X)
except KeyboardInterrupt:
    print("interrupted")
print(model.fit(X).embedding_.shape)
"""


@pytest.fixture(autouse=True)
def interrupts_are_heard():
    """What is started in the background of a shell ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="no signal can be sent to oneself")
def test_ctrl_c_while_torch_loads_leaves_the_next_fit_unharmed():
    done = subprocess.run(
        [sys.executable, "-c", FIT_AFTER_CTRL_C], capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["interrupted", "(60, 2)"], done.stderr


def test_a_handler_of_ones_own_is_called_and_put_back():
    calls = []

    def own(number, frame):
        calls.append(number)

    before = signal.signal(signal.SIGINT, own)
    try:
        with delay_interrupts():
            signal.raise_signal(signal.SIGINT)
            assert calls == []
        assert calls == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
