import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.label_objects import (
    compute_share_of_matching_objects,
    find_objects,
    mask_to_labels,
    to_integer_labels,
)


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("offset", [2**31, 2**53])
def test_huge_labels_take_no_memory_and_are_exact(labels, offset, kind):
    far = labels.astype(kind)
    far[far > 0] += kind(offset)
    found = find_objects(far)
    assert found.label_ids.tolist() == [offset + n for n in (2, 3, 7, 11)]
    assert found.boxes.tolist() == find_objects(labels).boxes.tolist()
    with pytest.raises(DataError, match="renumber the labels"):
        to_integer_labels(np.array([2**63], np.uint64))
    no_background = far + 1
    assert len(find_objects(no_background)) == 5


def test_a_mask_of_one_value_is_numbered(labels):
    assert mask_to_labels(labels) is labels
    for mask in (labels > 0, np.uint8(255) * (labels > 0)):
        numbers = mask_to_labels(mask)
        assert sorted(set(zip(labels.flat, numbers.flat, strict=True))) == [
            (0, 0), (2, 4), (3, 2), (7, 1), (11, 3)
        ]  # fmt: skip
    whole = np.ones_like(labels)
    series = mask_to_labels(np.stack([labels > 0, whole]), in_planes=True)
    assert len(np.unique(series[0])) == 5  # none grows together through the second
    assert mask_to_labels(np.stack([labels > 0, whole])).max() == 1


def test_objects_that_share_a_box_stay_what_they_are_called():
    found = find_objects(np.kron([[1, 2], [2, 1]], np.ones((4, 4), int)))
    assert found.match_to(found, np.arange(2)).tolist() == [0, 1]


def test_objects_of_another_image_are_no_edited_ones():
    row, names = np.arange(1, 8)[None], np.arange(7)
    found, edited, other = (
        find_objects(np.kron(numbers, np.ones((height, 4), int)))
        for height, numbers in ((4, row), (5, row), (5, row[:, ::-1]))
    )
    assert (found.match_to(edited, names) == names).all()
    assert (found.match_to(other, names) == -1).all()  # 4 is where it was


def test_labels_that_objects_reach_beyond_are_others(labels):
    objects = find_objects(labels)
    assert compute_share_of_matching_objects(labels, objects) == 1
    assert (
        compute_share_of_matching_objects(np.where(labels == 7, 0, labels), objects)
        == 3 / 4
    )
    assert (
        compute_share_of_matching_objects(labels[:, :45], objects) == 1
    )  # where 11 ends
    assert compute_share_of_matching_objects(labels[:, :44], objects) == 0
