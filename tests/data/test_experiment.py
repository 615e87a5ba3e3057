"""A folder of images with labels, measured in one go."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import tifffile
from PIL import Image

from napari_embedding_game.data import readers
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.images.experiment import measure_images, open_images
from napari_embedding_game.data.images.folder import (
    ImagePair,
    find_image_pairs,
    has_image_pairs,
)
from napari_embedding_game.data.images.image_table import build_image_table
from napari_embedding_game.data.stages import finish
from worlds import field, measure, read
from worlds import write_field as write

SHAPE = (40, 50)


@pytest.fixture
def plate(tmp_path):
    """Twelve fields, written in another order than that of their names."""
    folder = tmp_path / "plate"
    folder.mkdir()
    wells = [f"{row}{column:02d}" for row in "ABC" for column in range(1, 5)]
    order = np.random.default_rng(0).permutation(12)
    fields = {wells[i]: write(folder, f"{wells[i]}_s1", i, 1 + i % 6) for i in order}
    return folder, fields


def measured(folder):
    return finish(measure_images(finish(open_images(folder))))


def column(dataset, name):
    return dataset.profile[:, dataset.profile_names.index(name)]


def test_a_plate_is_measured_and_again_once_its_labels_are_edited(plate):
    folder, fields = plate
    images = finish(open_images(folder))
    dataset = finish(measure_images(images))
    obs, counts = dataset.obs, dataset.obs["well"].value_counts()
    for well, (image, labels) in fields.items():
        ids = np.unique(labels)[1:]
        assert counts[well] == len(ids)
        rows = obs["well"] == well
        assert obs["image"][rows].unique().tolist() == [f"{well}_s1"]
        assert obs["label"][rows].tolist() == ids.tolist()
        assert obs["row"][rows].unique().tolist() == [well[0]]
        assert obs["column"][rows].unique().tolist() == [str(int(well[1:]))]
        wanted = [image[labels == label].mean() for label in ids]
        means = column(dataset, "intensity_mean")[rows]
        np.testing.assert_allclose(means, wanted, rtol=1e-5)
    assert obs.index[0] == "A01_s1 label 3"
    assert "Measured 42 objects of 12 images in 1 channel." in dataset.notes
    # What has levels can be split by; numbers are measured on, also few ones.
    levels = {name for name in obs if isinstance(obs[name].dtype, pd.CategoricalDtype)}
    assert {"well", "row", "column", "image"} <= levels == {*dataset.level_columns}
    few = replace(dataset, obs=obs.assign(passage=np.arange(len(obs)) % 3))
    assert few.roles["passage"] == "numbers"
    assert "passage" not in few.level_columns
    # Boxes are places in the stack of labels.
    stack = images.labels
    assert stack.shape == (12, 1, *SHAPE)
    for row in range(0, len(obs), 5):
        box = stack[dataset.objects.make_box_slices(row)]
        assert (box == dataset.objects.label_ids[row]).any()
        place = int(dataset.objects.boxes[row, 0])
        assert images.names[place] == obs["image"].iloc[row]
    # Texture is measured against the range of all images.
    image, labels = fields["B02"]
    whole = image.astype(int).copy()  # background gives the same range
    pixels = [one for one, _ in fields.values()]
    whole[0, :2] = np.min(pixels), np.max(pixels)
    wanted = column(measure(whole, labels), "intensity_contrast")
    found = column(dataset, "intensity_contrast")[obs["well"] == "B02"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    # Edited labels are measured as they are.
    stack[2, 0, 30:34, 40:44] = 999
    after = finish(measure_images(images))
    assert "A03_s1 label 999" in after.obs.index
    assert len(after.obs) == len(obs) + 1


def test_an_image_without_cells_or_without_its_file_is_told(tmp_path):
    for seed, n in ((0, 5), (1, 0), (2, 5), (3, 5), (9, 3)):
        write(tmp_path, f"A{seed + 1:02d}", seed, n=n)
    (tmp_path / "A03_labels.tif").unlink()
    (tmp_path / "A04.tif").unlink()
    dataset = measured(tmp_path)
    assert "Without an object: A02." in dataset.notes
    assert "Left out, with no labels file: 1 image (A03.tif)." in dataset.notes
    assert "Left out, with no image: 1 labels file (A04_labels.tif)." in dataset.notes
    images = dataset.provenance["measured"]["images"]
    found = [(one["name"], one["well"], one["objects"]) for one in images]
    assert found == [("A01", "A01", 5), ("A02", "A02", 0), ("A10", "A10", 3)]
    json.dumps(images)  # goes into a session file


@pytest.mark.parametrize(
    ("image", "labels"),
    [
        ("x.tif", "x_labels.tif"),
        ("x.tif", "x-mask.tif"),
        ("x.png", "x_masks.tif"),
        ("x.tif", "x_seg.png"),
        ("x.ome.tif", "x_cp_masks.png"),
        ("images/x.tif", "labels/x.tif"),
        ("x.tif", "masks/x.png"),
        ("images/x.tif", "masks/x_mask.tif"),
        ("Images/x.tif", "Labels/X.tif"),
    ],
)
def test_pairs_are_found_by_name(tmp_path, image, labels):
    for name in (image, labels):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert has_image_pairs(tmp_path)
    (pair,), _ = find_image_pairs(tmp_path)
    assert pair.images == (tmp_path / image,)
    assert pair.labels == tmp_path / labels
    assert pair.name == "x"


def test_folders_in_the_folder_are_plates(tmp_path):
    for plate in ("first", "second"):
        (tmp_path / plate / "images").mkdir(parents=True)
        (tmp_path / plate / "labels").mkdir()
        for part in ("images", "labels"):
            (tmp_path / plate / part / "B02.tif").touch()
    for elsewhere in (".thumbnails", "first/.trash", "a/b/c/d"):  # hidden, too deep
        (tmp_path / elsewhere).mkdir(parents=True)
        for name in ("B03.tif", "B03_labels.tif"):
            (tmp_path / elsewhere / name).touch()
    pairs, _ = find_image_pairs(tmp_path)
    found = {p.plate: p.name for p in pairs}
    assert found == {"first": "first/B02", "second": "second/B02"}


def test_folders_that_are_none_of_images_say_why(tmp_path):
    (tmp_path / "a.tif").touch()
    assert not has_image_pairs(tmp_path)
    with pytest.raises(DataError, match=r"1 image and 0 labels files.*_cp_masks"):
        find_image_pairs(tmp_path)
    with pytest.raises(DataError, match="or images and labels"):
        read(tmp_path)
    for ending in ("labels", "mask"):
        (tmp_path / f"a_{ending}.tif").touch()
    with pytest.raises(DataError, match="2 labels files belong to one image"):
        find_image_pairs(tmp_path)
    assert has_image_pairs(tmp_path)  # so that the sentence above is told


def test_channels_in_files_of_their_own(tmp_path):
    image, labels = write(tmp_path, "A01_s1", 0)
    (tmp_path / "A01_s1.tif").rename(tmp_path / "A01_s1_w1.tif")
    tifffile.imwrite(tmp_path / "A01_s1_w2.tif", image[::-1])
    dataset = measured(tmp_path)
    wanted = [image[::-1][labels == label].mean() for label in np.unique(labels)[1:]]
    np.testing.assert_allclose(column(dataset, "w2_mean"), wanted, rtol=1e-5)
    assert dataset.obs["image"].iloc[0] == "A01_s1"


def test_masks_of_one_value_are_their_parts(tmp_path):
    for seed in (0, 1):
        _, labels = write(tmp_path, f"A0{seed + 1}", seed)
        mask = np.uint8(255 if seed else 1) * (labels > 0)
        Image.fromarray(mask).save(tmp_path / f"A0{seed + 1}_labels.png")
        (tmp_path / f"A0{seed + 1}_labels.tif").unlink()
    dataset = measured(tmp_path)
    assert len(dataset.obs) == 10
    assert "The labels have one value alone" in "".join(dataset.notes)


def test_channels_lie_where_a_file_says(tmp_path):
    image, labels = field(0)
    stack, volume = np.stack([image, image // 2]), np.stack([labels] * 2)
    stacks = {"imagej": True, "metadata": {"axes": "ZCYX"}}
    tifffile.imwrite(tmp_path / "z.tif", np.stack([stack] * 2), **stacks)
    tifffile.imwrite(tmp_path / "z_labels.tif", volume)
    for part in ("t", "t_labels"):
        series = {"imagej": True, "metadata": {"axes": "TYX"}}
        tifffile.imwrite(tmp_path / f"{part}.tif", volume, **series)
    dataset = measured(tmp_path)
    notes = "\n".join(dataset.notes)
    assert "t was left out: t_labels.tif is a time series" in notes
    assert "Each is measured as a stack (z, y, x)." in notes
    first, second = (column(dataset, f"channel {i}_max") for i in (1, 2))
    np.testing.assert_array_equal(second, first // 2)


def test_a_plate_of_very_many_images_is_one(tmp_path):
    for kind in ("images", "labels"):
        (tmp_path / kind).mkdir()
        for number in range(2_100):
            (tmp_path / kind / f"{number}.tif").touch()
    assert has_image_pairs(tmp_path)


def test_coloured_and_grey_pictures_of_different_sizes(tmp_path):
    for seed, shape in enumerate([(40, 50), (30, 60)]):
        image, labels = field(seed, 4, shape)
        colors = np.dstack([image // 16, image // 32, image // 64]).astype(np.uint8)
        Image.fromarray(colors).save(tmp_path / f"b{seed}.png")
        tifffile.imwrite(tmp_path / f"b{seed}_masks.tif", labels)
    images = finish(open_images(tmp_path))
    dataset = finish(measure_images(images))
    assert {"red_mean", "green_mean", "blue_mean"} <= set(dataset.profile_names)
    stack = images.channels[""]
    assert images.is_rgb
    assert stack.shape == (2, 1, 40, 60, 3)
    assert not np.asarray(stack[1, 0, 30:]).any()
    assert len(dataset.obs) == 8


def test_images_that_do_not_fit_are_left_out_with_the_reason(tmp_path):
    for seed in range(3):
        write(tmp_path, f"A0{seed + 1}", seed)
    (tmp_path / "A02.tif").write_bytes(b"no picture")
    image, labels = write(tmp_path, "A04", 3)
    tifffile.imwrite(tmp_path / "A04.tif", np.stack([image, image]))
    write(tmp_path, "A05", 4)
    tifffile.imwrite(tmp_path / "A05.tif", image[:10])
    tifffile.imwrite(tmp_path / "A03_labels.tif", labels + np.float32(0.5))
    write(tmp_path, "A06", 5)[1]
    (tmp_path / "A06_labels.tif").unlink()
    Image.fromarray(labels.astype(np.uint8)).save(tmp_path / "A06_labels.jpg")
    dataset = measured(tmp_path)
    notes = "\n".join(dataset.notes)
    assert dataset.obs["image"].unique().tolist() in (["A01"], ["A04"])
    assert "A02 was left out: A02.tif could not be read as an image" in notes
    assert "A03 was left out: A03_labels.tif: The labels are float32" in notes
    far = np.where(labels, labels + float(2**32), 0)  # which a double holds
    tifffile.imwrite(tmp_path / "A01_labels.tif", far)
    tifffile.imwrite(tmp_path / "A01.tif", image)
    assert measured(tmp_path).obs["label"].min() == 2**32 + 3
    assert "A05 was left out: The image has 10 x 50 pixels" in notes
    assert "A06 was left out: A06_labels.jpg is a coloured picture, a JPEG" in notes
    assert "as channels or axes are not those of the other" in notes


def test_a_table_of_plates_and_wells_is_joined_by_both(tmp_path):
    for seed, plate in enumerate(("p1", "p2")):
        (tmp_path / plate).mkdir()
        write(tmp_path / plate, "A01", seed)
    rows = {"Plate": ["p2", "p1"], "Well": ["A1", "A1"], "dose": ["2,5", "1,5"]}
    pd.DataFrame(rows).to_csv(tmp_path / "drugs.csv", index=False, sep=";")
    obs = measured(tmp_path).obs
    found = set(zip(obs["plate"], obs["dose"], strict=True))
    assert found == {("p1", "1.5"), ("p2", "2.5")}


def test_a_table_is_joined_by_file_name_and_never_by_order(plate):
    folder, fields = plate
    names = [f"{well}_s1.tif" for well in sorted(fields, reverse=True)]
    doses = {name: 0.1 * 10 ** (int(name[1:3]) - 1) for name in names}
    table = pd.DataFrame({"dose": doses.values(), "File": names, "note": "x"})
    numbers = [str(10**15 + i) for i in range(12)]
    table = table.assign(lot=["0012", "12"] * 6, barcode=numbers).astype(object)
    table.loc[12] = ["none", "empty", "x", "1", "1"]  # of a well without an image
    table.iloc[1:].to_csv(folder / "layout.csv", index=False)
    dataset = measured(folder)
    for well in fields:
        found = dataset.obs["dose"][dataset.obs["well"] == well].unique().tolist()
        if well == "C04":
            assert pd.isna(found[0])
        else:
            assert [float(one) for one in found] == [doses[f"{well}_s1.tif"]]
    assert dataset.obs["dose"].cat.categories.tolist() == ["0.1", "1", "10", "100"]
    assert dataset.obs["lot"].cat.categories.tolist() == ["0012", "12"]
    assert dataset.obs["barcode"].nunique() == 11
    notes = "\n".join(dataset.notes)
    assert "Joined by file name: dose, note, lot, barcode of layout.csv." in notes
    assert "It lacks 1 image: C04_s1." in notes


def test_of_many_numbers_long_ones_are_ids_and_others_are_measured(tmp_path):
    names = [f"image_{i}" for i in range(40)]
    table = pd.DataFrame({"File": names, "barcode": 2**53 + 3 * np.arange(40)})
    table.loc[0, "barcode"] = 7
    batch = np.arange(40) % 30  # no more than groups may be
    more = {"dose": np.arange(40), "batch": batch, "plate_age": np.arange(40) % 31}
    table.assign(**more).to_csv(tmp_path / "layout.csv", index=False)
    file = tmp_path / "any.tif"
    pairs = [ImagePair(name=name, images=(file,), labels=file) for name in names]
    columns, _ = build_image_table(pairs, [tmp_path / "layout.csv"])
    assert columns["dose"].tolist() == [*range(40)]
    assert columns["batch"].tolist() == [*map(str, batch)]
    assert columns["plate_age"].dtype.kind in "iu"
    assert columns["barcode"].tolist() == [*table["barcode"].astype(str)]


def test_a_plate_layout_is_joined_by_well(plate):
    folder, _ = plate
    drugs = {"A": "None", "B": "DMSO", "C": "drug C"}
    rows = [
        (f"S{column}", f"{row.lower()}{column}", drugs[row], f"x{row}", row, row, "")
        for column in (1, 2, 3, 4, 9)
        for row in "CAB"
    ]
    columns = ["sample", "Well", "drug", "name", "Plate", "plate", "empty"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "l.csv", index=False, sep=";")
    (folder / "other.csv").write_bytes(b"drug\n\xb5M\n")
    dataset = measured(folder)
    wells, found = dataset.obs["well"].astype(str), dataset.obs["drug"].astype(str)
    assert (found == wells.str[0].map(drugs)).all()
    notes = "".join(dataset.notes)
    assert "Without an image: c9, a9, b9." in notes
    assert "other.csv is not written in UTF-8" in notes
    images = dataset.provenance["measured"]["images"]
    assert images[0]["name"] == "A01_s1"  # by which a moved folder is found again
    assert images[0]["name (l.csv)"] == "xA"


def test_tables_that_are_about_something_else_are_told(tmp_path):
    write(tmp_path, "A01", 0)
    rows = pd.DataFrame({"image": ["A01", "A01"], "area": [3, 4]})
    rows.to_csv(tmp_path / "objects.csv", index=False)
    pd.DataFrame({"gene": ["CD3D"]}).to_csv(tmp_path / "genes.csv", index=False)
    notes = "\n".join(measured(tmp_path).notes)
    assert "objects.csv has several rows for A01, so it was not joined" in notes
    assert "genes.csv names none of the images" in notes


def test_the_readers_take_a_folder_of_images(plate, spaces, columns):
    folder, _ = plate
    assert readers.can_read(folder)
    dataset = read(folder, columns=["area", "intensity_mean"])
    assert dataset.var_names == ("area", "intensity_mean")
    assert spaces(folder) == [dataset.space]
    assert "intensity_mean" in columns(folder)
    with pytest.raises(DataError, match="choose one of measures of plate"):
        read(folder, space="X_pca")


def write_ome_zarr_plate(folder, fields, version):
    """Write fields (image, labels) by well as an OME-Zarr plate of two channels."""
    import zarr

    def group(path, noted):
        path.mkdir(parents=True, exist_ok=True)
        if version == 2:
            (path / ".zgroup").write_text('{"zarr_format": 2}')
            (path / ".zattrs").write_text(json.dumps(noted))
            return
        noted = {"zarr_format": 3, "node_type": "group", "attributes": {"ome": noted}}
        (path / "zarr.json").write_text(json.dumps(noted))

    def scales(path, pixels, axes, **more):
        group(
            path,
            {
                "multiscales": [
                    {"axes": [{"name": x} for x in axes], "datasets": [{"path": "0"}]}
                ],
                **more,
            },
        )
        array = zarr.create_array(
            path / "0",
            shape=pixels.shape,
            dtype=pixels.dtype,
            chunks=pixels.shape,
            zarr_format=version,
        )
        array[:] = pixels

    wells = [f"{well[0]}/{int(well[1:])}" for well in fields]
    group(folder, {"plate": {"wells": [{"path": x} for x in wells]}})
    for path, (image, labels) in zip(wells, fields.values(), strict=True):
        well = folder / path
        group(well, {"well": {"images": [{"path": "0"}]}})
        pixels = np.stack([image, image.max() - image])[None, :, None]  # t, c, z, y, x
        names = {"channels": [{"label": "DAPI"}, {"label": "GFP"}]}
        scales(well / "0", pixels, "tczyx", omero=names)
        group(well / "0/labels", {"labels": ["nuclei", "cells"]})
        scales(well / "0/labels/nuclei", labels[None].astype(np.int32), "zyx")
    return folder


@pytest.mark.parametrize("version", [2, 3])
def test_a_plate_of_ome_zarr_is_measured_as_its_images_are(tmp_path, plate, version):
    folder, fields = plate
    path = write_ome_zarr_plate(tmp_path / "screen.ome.zarr", fields, version)
    dataset, by_files = read(path), measured(folder).obs
    wells = dataset.obs["well"].astype(str)
    assert wells.value_counts().to_dict() == (
        by_files["well"].astype(str).value_counts().to_dict()
    )
    values = column(dataset, "DAPI_mean") + column(dataset, "GFP_mean")
    for well, (image, labels) in fields.items():
        at = (wells == well).to_numpy()
        ids = dataset.obs["label"][at].astype(int)
        means = [image[labels == label].mean() for label in ids]
        np.testing.assert_allclose(column(dataset, "DAPI_mean")[at], means, rtol=1e-5)
        np.testing.assert_allclose(values[at], image.max(), rtol=1e-4)
    assert any("cells" in note for note in dataset.notes)


def test_a_plate_of_ome_zarr_that_cannot_be_measured_says_why(tmp_path, plate):
    _, fields = plate
    path = write_ome_zarr_plate(tmp_path / "screen.zarr", fields, 2)
    for image in path.glob("*/*/0/labels/.zattrs"):
        image.unlink()
    with pytest.raises(DataError, match="plate without labels: segment"):
        read(path)
    (path / ".zattrs").write_text('{"plate": {"wells": [{"path": "../plate"}]}}')
    with pytest.raises(DataError, match=r'path "\.\./plate", which is'):
        read(path)
    (path / ".zattrs").write_text('{"plate": {"wells": 3}}')
    with pytest.raises(DataError, match="lists no wells"):
        read(path)
    (path / ".zattrs").write_text('{"plate": {"wells": [3]}}')
    with pytest.raises(DataError, match="could not be read as a part of a plate"):
        read(path)


def test_damaged_metadata_of_labels_give_a_sentence(tmp_path, plate):
    _, fields = plate
    path = write_ome_zarr_plate(tmp_path / "screen.zarr", fields, 2)
    (path / "B/2/0/labels/.zattrs").write_text('{"labels": ["nuc')
    with pytest.raises(DataError, match="could not be read as the labels of B/2/0"):
        read(path)
