"""What the window says while loops are compiled, as on a new computer."""

import threading

import numba


def test_a_run_that_waits_for_compiled_loops_says_so(dock, session, engine, qtbot):
    run = dock.run_controls
    dock.show()
    engine.gate.clear()
    run.run_button.click()
    qtbot.waitUntil(lambda: run.stage.text() == "Finding neighbours …")
    compiled = numba.njit(lambda x: x + 1)
    thread = threading.Thread(target=compiled, args=(1,))
    thread.start()
    said = "Preparing this computer for the first map (once): 1 of at most 150 parts"
    qtbot.waitUntil(lambda: run.stage.text() == said)
    assert (run.bar.value(), run.bar.maximum()) == (1, 150)
    qtbot.waitUntil(lambda: run.stage.text() == "Finding neighbours …")
    assert run.bar.value() == 0
    thread.join()
    compiled(1.5)  # of a dock that plays nothing it is no news
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "finished")
    assert "Finished" in run.stage.text()
