import numpy as np
import pytest
from skimage.measure import regionprops_table

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.images.channels import split_channels_by_name
from napari_embedding_game.data.images.nuclei import measure_nuclei_in_stages
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import finish
from worlds import measure


@pytest.fixture
def image(labels):
    rng = np.random.default_rng(0)
    return rng.integers(0, 200, labels.shape).astype(np.uint8)


def measured(dataset):
    return dict(zip(dataset.profile_names, dataset.profile.T, strict=True))


@pytest.mark.parametrize("scale", [None, (0.5, 0.5)])
def test_same_numbers_as_scikit_image(labels, image, scale):
    labels[25, 6] = labels[24, 5] = 2  # one pixel has no perimeter and no axes
    ours = measured(measure(image, labels, scale=scale))
    shape = ["area", "extent", "eccentricity", "solidity", "perimeter"]
    same = shape + [f"intensity_{name}" for name in ("mean", "min", "max", "std")]
    names = dict(zip(same, same, strict=True)) | {
        "equivalent_diameter": "equivalent_diameter_area",
        "major_axis_length": "axis_major_length",
        "minor_axis_length": "axis_minor_length",
    }
    theirs = regionprops_table(
        labels, image, properties=tuple(names.values()), spacing=scale
    )
    for name, their_name in names.items():
        np.testing.assert_allclose(ours[name], theirs[their_name], rtol=1e-5, atol=1e-6)


def test_what_a_row_is_about(labels, image):
    dataset = measure(image, labels, name="nuclei")
    assert dataset.obs["label"].tolist() == [2, 3, 7, 11]
    assert dataset.obs.index.tolist() == ["2", "3", "7", "11"]
    assert dataset.obs.loc["11", ["centroid_y", "centroid_x"]].tolist() == [30, 38]
    assert dataset.objects.label_ids.tolist() == [2, 3, 7, 11]
    assert dataset.objects.boxes[2].tolist() == [0, 0, 6, 8]
    assert dataset.space == "measures of nuclei"
    np.testing.assert_allclose(dataset.X.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(dataset.X.std(axis=0), 1, rtol=1e-5)
    assert not {"label", "centroid_y", "centroid_x"} & set(dataset.var_names)
    assert any("mean 0 and standard deviation 1" in note for note in dataset.notes)


def test_texture(labels):
    image = np.zeros(labels.shape)
    image[10:20, 10:30:2] = 8  # stripes in object 3
    image[0:6, 0:4] = 8  # two halves in object 7
    image[22:40, 30:46] = 3  # object 11 is flat
    found = measured(measure(image, labels))
    assert found["intensity_entropy"].tolist() == [0, 1, 1, 0]
    # Stripes: all neighbours along a row differ fully, none along a column.
    n_along_rows, n_along_columns = 10 * 19, 9 * 20
    stripes = n_along_rows / (n_along_rows + n_along_columns)
    halves = 6 / (6 * 7 + 5 * 8)
    np.testing.assert_allclose(found["intensity_contrast"], [0, stripes, halves, 0])


@pytest.mark.parametrize(
    ("image_shape", "expected"),
    [
        ((40, 50), ["intensity"]),
        ((40, 50, 3), ["red", "green", "blue"]),
        ((40, 50, 4), [f"channel {i}" for i in range(1, 5)]),
        ((40, 50, 2), ["channel 1", "channel 2"]),
        ((5, 40, 50), [f"channel {i}" for i in range(1, 6)]),
    ],
)
def test_channels(image_shape, expected):
    image = np.random.default_rng(0).random(image_shape)
    channels = split_channels_by_name(image, (40, 50))
    assert list(channels) == expected
    assert all(channel.shape == (40, 50) for channel in channels.values())
    if len(image_shape) == 3 and image_shape[-1] == 4:
        image[..., 3] = 1  # an alpha
        assert list(split_channels_by_name(image, (40, 50))) == ["red", "green", "blue"]


def test_neighbours_and_objects_at_the_border(labels):
    dataset = measure(None, labels, groups=("neighbours",))
    centres = dataset.obs[["centroid_y", "centroid_x"]].to_numpy()
    away = np.linalg.norm(centres[:, None] - centres, axis=2)
    away[np.diag_indices(4)] = np.inf
    found = measured(dataset)
    np.testing.assert_allclose(found["nearest"], away.min(axis=1), rtol=1e-6)
    whole = measure(None, labels, with_border=False)
    assert whole.obs["label"].tolist() == [2, 3, 11]
    assert "Left out at the border of the image: 1 object." in whole.notes
    with pytest.raises(DataError, match="Nothing of 'labels' is measured"):
        measure(None, labels, groups=("texture",))
    with pytest.raises(DataError, match="objects at the border too"):
        measure(None, np.where(labels == 7, 7, 0), with_border=False)


def test_what_does_not_fit_is_told(labels, image):
    signed = np.where(labels == 7, -7, labels.astype(int))
    notes = " ".join(measure(None, signed).notes)
    assert "Below 0, which is background here: 1 label." in notes
    sizes = "The image has 40 x 51 pixels and the labels have 40 x 50"
    for one, other, sentence in (
        (np.zeros((40, 51)), labels, sizes),
        (np.zeros((40, 50), complex), labels, "complex128 values"),
        ({"DNA": np.zeros((4, 5))}, labels, "channel DNA has 4 x 5 pixels"),
        (image, labels.astype(float), "float64 values"),
        (image, (labels == 3).astype(int), "only one row"),
        (None, labels[None, None], "'labels' has 4 axes"),
    ):
        with pytest.raises(DataError, match=sentence):
            measure(one, other)


@pytest.fixture
def stack(labels):
    flat = np.where(labels == 7, labels, 0)
    return np.stack([labels, labels, flat, np.zeros_like(labels)])


def test_stack(stack):
    image = np.random.default_rng(0).random(stack.shape)
    dataset = measure(image, stack, scale=(2, 1, 1))
    found = measured(dataset)
    theirs = regionprops_table(
        stack, image, properties=("area", "intensity_mean", "axis_major_length"),
        spacing=(2, 1, 1),
    )  # fmt: skip
    np.testing.assert_allclose(found["volume"], theirs["area"])
    np.testing.assert_allclose(found["intensity_mean"], theirs["intensity_mean"], 1e-5)
    np.testing.assert_allclose(
        found["major_axis_length"], theirs["axis_major_length"], rtol=1e-5
    )
    assert list(dataset.obs) == ["label", "centroid_z", "centroid_y", "centroid_x"]
    # In tissue the objects lie as far from each other as in the layer.
    centers = dataset.obs[["centroid_x", "centroid_y", "centroid_z"]].to_numpy()
    np.testing.assert_allclose(dataset.tissue.positions, centers * [1, 1, 2])
    assert dataset.tissue.unit == ""
    in_pixels = measure(image, stack).tissue
    np.testing.assert_allclose(in_pixels.positions, centers)
    assert in_pixels.unit == "pixel"
    assert dataset.objects.ndim == 3
    told = "The image has 4 channels and as many pictures"
    for channels, is_told in ((4, True), (3, False)):
        dataset = measure(np.stack([image] * channels), stack)
        assert any(told in note for note in dataset.notes) is is_told


def test_time_series_is_measured_picture_by_picture(stack, labels):
    image = np.random.default_rng(0).random(stack.shape)
    dataset = measure(image, stack, first_axis="time")
    assert len(dataset.obs) == 4 + 4 + 1
    assert dataset.obs["time"].tolist() == [0] * 4 + [1] * 4 + [2]
    assert dataset.obs.index[-1] == "time 2 label 7"
    assert dataset.objects.boxes[-1].tolist() == [2, 0, 0, 3, 6, 8]
    volumes = measure(None, np.stack([stack, stack]), first_axis="image")
    assert len(volumes.obs) == 2 * 9
    assert "is several rows" in volumes.notes[0]
    apart = measure(None, np.stack([labels, labels[::-1, ::-1]]))
    assert "If the planes are times" in apart.notes[0]
    second = measured(measure(image[1], labels))
    for name in ("intensity_mean", "area"):
        found = measured(dataset)[name][4:8]
        np.testing.assert_allclose(found, second[name], rtol=1e-6)


def test_objects_with_missing_pixels_are_left_out(labels, image):
    broken = image.astype(float)
    broken[30, 38] = np.nan
    with pytest.raises(DataError, match="missing or infinite values in 1 of 4 rows"):
        measure(broken, labels)
    dataset = measure(broken, labels, options=ReadOptions(missing="drop"))
    assert dataset.obs["label"].tolist() == [2, 3, 7]
    assert dataset.objects.label_ids.tolist() == [2, 3, 7]
    assert dataset.source_objects.label_ids.tolist() == [2, 3, 7, 11]
    assert dataset.expand_to_source_rows(np.arange(3.0), np.nan)[3] != 3


def test_nuclei():
    sample = finish(measure_nuclei_in_stages())
    image, labels, dataset = sample.image, sample.labels, sample.dataset
    assert image.shape == (512, 512, 3)
    assert labels.shape == (512, 512)
    assert 200 < len(dataset.obs) < 500
    assert dataset.obs["label"].tolist() == list(range(1, labels.max() + 1))
    assert {"DAB_mean", "haematoxylin_std", "area"} <= set(dataset.var_names)
    # Nuclei are where the picture is bluer, and their borders lie inside.
    blueness = image[..., 2].astype(float) - image[..., 0]
    assert blueness[labels > 0].mean() > blueness[labels == 0].mean() + 10
    assert len(dataset.objects) == len(dataset.obs)
