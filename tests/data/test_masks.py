import numpy as np

from napari_embedding_game.data.images.masks import as_labels


def test_a_mask_of_one_value_is_numbered(labels):
    assert as_labels(labels) is labels
    for mask in (labels > 0, np.uint8(255) * (labels > 0)):
        numbers = as_labels(mask)
        assert sorted(set(zip(labels.flat, numbers.flat, strict=True))) == [
            (0, 0), (2, 4), (3, 2), (7, 1), (11, 3)
        ]  # fmt: skip
