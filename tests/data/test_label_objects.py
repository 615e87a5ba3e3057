import numpy as np
import pytest

from napari_embedding_game.data.label_objects import find_objects


@pytest.mark.parametrize("offset", [2**31, 2**40])
def test_huge_labels_take_no_memory(labels, offset):
    far = labels.astype(np.int64)
    far[far > 0] += offset
    found = find_objects(far)
    assert found.label_ids.tolist() == [offset + n for n in (2, 3, 7, 11)]
    assert found.boxes.tolist() == find_objects(labels).boxes.tolist()
    no_background = far + 1
    assert len(find_objects(no_background)) == 5
