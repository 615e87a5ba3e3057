from napari_embedding_game.core.energy import pair_loops


def test_chunks_cover_every_point():
    sizes = [1, pair_loops.CHUNK - 1, pair_loops.CHUNK, pair_loops.CHUNK + 1]
    assert [pair_loops.n_chunks(n) for n in sizes] == [1, 1, 1, 2]
