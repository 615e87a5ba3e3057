import numpy as np
import pytest

from napari_embedding_game.data.label_objects import find_objects


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("offset", [2**31, 2**53])
def test_huge_labels_take_no_memory_and_are_exact(labels, offset, kind):
    far = labels.astype(kind)
    far[far > 0] += kind(offset)
    found = find_objects(far)
    assert found.label_ids.tolist() == [offset + n for n in (2, 3, 7, 11)]
    assert found.boxes.tolist() == find_objects(labels).boxes.tolist()
    no_background = far + 1
    assert len(find_objects(no_background)) == 5
