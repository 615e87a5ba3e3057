import numpy as np

from napari_embedding_game.data.images.masks import (
    as_labels,
    looks_like_labels,
)


def test_patches_of_whole_numbers_are_labels(labels):
    grey = np.dstack([labels.astype(np.uint8)] * 3)
    colored = grey * np.array([1, 1, 2], np.uint8)
    noise = np.random.default_rng(0).integers(0, 9, labels.shape)
    assert looks_like_labels(labels)
    assert looks_like_labels(labels > 0)
    assert looks_like_labels(labels.astype(np.float32))
    assert looks_like_labels(np.stack([labels] * 3))
    assert looks_like_labels(grey, is_rgb=True)
    assert not looks_like_labels(colored, is_rgb=True)
    assert not looks_like_labels(labels / 2)
    assert not looks_like_labels(noise)
    assert not looks_like_labels(np.zeros_like(labels))
    assert not looks_like_labels(np.where(labels, noise, 0))


def test_a_mask_of_one_value_is_numbered(labels):
    same, is_numbered = as_labels(labels)
    assert same is labels
    assert not is_numbered
    numbers, is_numbered = as_labels(255 * (labels > 0))
    assert is_numbered
    assert sorted(set(zip(labels.flat, numbers.flat, strict=True))) == [
        (0, 0), (2, 4), (3, 2), (7, 1), (11, 3)
    ]  # fmt: skip
