import numpy as np
import pytest

from napari_embedding_game.data.formats.tables import from_features
from napari_embedding_game.data.images.join import (
    JoinRequest,
    join,
    linked,
)
from napari_embedding_game.data.label_objects import find_objects
from napari_embedding_game.data.read_options import ReadOptions


def matched(table, labels):
    return join(table, JoinRequest("labels", labels))


@pytest.mark.parametrize("offset", [2**31, 2**40])
def test_huge_labels_take_no_memory(labels, offset):
    far = labels.astype(np.int64)
    far[far > 0] += offset
    found = find_objects(far)
    assert found.label_ids.tolist() == [offset + n for n in (2, 3, 7, 11)]
    assert found.boxes.tolist() == find_objects(labels).boxes.tolist()
    no_background = far + 1
    assert len(find_objects(no_background)) == 5


def test_left_out_rows_have_no_object_in_the_map(labels):
    frame = {
        "label": [2, 3, 7, 11],
        "size": [1.0, np.nan, 3, 5],
        "tone": [1.0, 2, 2, 3],
    }
    dataset = from_features(frame, "t", options=ReadOptions(missing="drop"))
    dataset = linked(dataset, matched(dataset.source_obs, labels))
    assert dataset.objects.label_ids.tolist() == [2, 7, 11]
    assert dataset.source_objects.label_ids.tolist() == [2, 3, 7, 11]
