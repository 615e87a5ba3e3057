from napari_embedding_game.ui.tasks.throttle import debounced, throttled


def test_the_first_call_comes_at_once_and_the_others_as_one_after_the_wait(qtbot):
    done = []
    often = throttled(100, lambda: done.append(1), at_once=True)
    often.throttle()
    assert done == [1]
    for _ in range(5):
        often.throttle()
    assert done == [1]
    qtbot.waitUntil(lambda: done == [1, 1])
    qtbot.wait(250)
    assert done == [1, 1]


def test_a_pending_call_can_be_cancelled(qtbot):
    done = []
    later = throttled(30, lambda: done.append(1))
    later.throttle()
    later.cancel()
    qtbot.wait(100)
    assert done == []
    later.throttle()
    qtbot.waitUntil(lambda: done == [1])


def test_a_rest_is_waited_for_from_the_last_call_on(qtbot):
    done = []
    rest = debounced(200, lambda: done.append(1))
    for _ in range(4):
        rest.throttle()
        qtbot.wait(20)
    assert done == []
    qtbot.waitUntil(lambda: done == [1])
