import numpy as np
import pytest
from skimage.measure import regionprops

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.tables import from_features
from napari_embedding_game.data.images.label_column import link
from napari_embedding_game.data.label_objects import Objects, find_objects


def test_same_boxes_as_scikit_image(labels):
    found = find_objects(labels)
    regions = regionprops(labels)
    assert found.label_ids.tolist() == [region.label for region in regions]
    assert found.boxes.tolist() == [list(region.bbox) for region in regions]
    assert found.ndim == 2
    assert len(found) == 4


def test_stack(labels):
    stack = np.stack([labels, labels, np.zeros_like(labels)])
    found = find_objects(stack)
    assert found.boxes[0].tolist() == [0, 25, 5, 2, 26, 6]
    assert stack[found.slices(0)].shape == (2, 1, 1)
    assert found.centers[0].tolist() == [0.5, 25, 5]


@pytest.mark.parametrize("offset", [2**31, 2**40])
def test_huge_labels_take_no_memory(labels, offset):
    far = labels.astype(np.int64)
    far[far > 0] += offset
    found = find_objects(far)
    assert found.label_ids.tolist() == [offset + n for n in (2, 3, 7, 11)]
    assert found.boxes.tolist() == find_objects(labels).boxes.tolist()
    no_background = far + 1
    assert len(find_objects(no_background)) == 5


def test_negative_values_are_background(labels):
    signed = labels.astype(np.int32)
    signed[0, 45] = -3
    assert find_objects(signed).label_ids.tolist() == [2, 3, 7, 11]


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.zeros((4, 4), int), "no object"),
        (np.zeros((0, 4), int), "no object"),
        (np.ones((4, 4)), "float64 values"),
    ],
)
def test_labels_that_are_none(labels, sentence):
    with pytest.raises(DataError, match=sentence):
        find_objects(labels)


def test_boxes_fit_labels():
    with pytest.raises(ValueError, match="for 2 objects"):
        Objects(np.array([1, 2]), np.zeros((2, 3), int))
    with pytest.raises(ValueError, match="for 2 objects"):
        Objects(np.array([1, 2]), np.zeros((3, 4), int))


def table(**columns):
    rng = np.random.default_rng(0)
    n = len(next(iter(columns.values()))) if columns else 4
    return from_features({**columns, "size": rng.random(n), "tone": rng.random(n)}, "t")


@pytest.mark.parametrize("name", ["label", "index"])
def test_rows_find_their_objects_by_name(labels, name):
    linked = link(table(**{name: [11, 2, 7]}), labels)
    assert linked.objects.label_ids.tolist() == [11, 2, 7]
    assert linked.objects.boxes[1].tolist() == [25, 5, 26, 6]


def test_left_out_rows_have_no_object_in_the_map(labels):
    frame = {
        "label": [2, 3, 7, 11],
        "size": [1.0, np.nan, 3, 5],
        "tone": [1.0, 2, 2, 3],
    }
    linked = link(from_features(frame, "t", missing="drop"), labels)
    assert linked.objects.label_ids.tolist() == [2, 7, 11]
    assert linked.source_objects.label_ids.tolist() == [2, 3, 7, 11]


def test_objects_that_cannot_be_told(labels):
    with pytest.raises(DataError, match=r"2 rows whose label .* the first 4"):
        link(table(label=[4, 99]), labels)
    for names in ("abcde", "abcd"):  # as many rows as objects say nothing of the order
        with pytest.raises(
            DataError, match=rf"{len(names)} rows and no column of labels, .* 4 objects"
        ):
            link(table(name=list(names)), labels)
    with pytest.raises(DataError, match='no column "nucleus" of whole numbers'):
        link(table(label=[2, 3]), labels, column="nucleus")
