from napari_embedding_game.data.stages import Stage, finish


def work(log):
    try:
        yield Stage("first", 0.0)
        yield Stage("second")
        return 3
    finally:
        log.append("closed")


def test_finish_returns_what_was_made():
    log = []
    assert finish(work(log)) == 3
    assert log == ["closed"]


def test_a_stage_has_no_share_unless_known():
    assert [stage.share for stage in work([])] == [0.0, None]
