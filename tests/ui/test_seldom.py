from napari_embedding_game.ui.seldom import Seldom


def test_the_first_time_comes_at_once_and_the_next_after_the_wait():
    now = [100.0]
    turn = Seldom(0.5, lambda: now[0])
    assert turn.comes()
    now[0] += 0.4
    assert not turn.comes()
    now[0] += 0.2
    assert turn.comes()
    assert not turn.comes()
