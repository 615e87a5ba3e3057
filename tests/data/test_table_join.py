"""Tables from elsewhere find the image, the column and the picture they are about."""

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.images.table_join import (
    JoinRequest,
    LabelImage,
    join,
)
from napari_embedding_game.data.joined import load_joined
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import finish

ORDER = [7, 2, 11, 3]
"""The labels of the image, in an order of their own."""


def table(**columns):
    n = len(next(iter(columns.values())))
    rng = np.random.default_rng(0)
    return pd.DataFrame({"area": rng.random(n) + 1, "tone": rng.random(n), **columns})


@pytest.fixture
def nuclei(labels):
    return LabelImage("nuclei", labels)


def guess(*images):
    return JoinRequest(images, is_guess=True)


def test_the_image_whose_labels_are_those_of_the_table_is_taken(nuclei):
    other = LabelImage("cells", np.where(nuclei.pixels == 11, 40, nuclei.pixels))
    found = join(table(ObjectNumber=[*map(float, ORDER)]), guess(other, nuclei))
    assert found.image is nuclei
    assert found.match.column == "ObjectNumber"
    assert found.match.objects.label_ids.tolist() == ORDER
    assert found.columns == ["ObjectNumber"]


def test_pictures_with_the_same_labels_are_left_to_the_person(nuclei):
    frame = table(ImageNumber=[1] * 4 + [2] * 4, ObjectNumber=ORDER * 2)
    refused = join(frame, guess(nuclei), "Nuclei.csv")
    assert refused.match is None
    assert "rows of 2 pictures (column 'ImageNumber')" in refused.refusal
    assert [one.told for one in refused.pictures] == ["ImageNumber 1", "ImageNumber 2"]
    chosen = JoinRequest((nuclei,), picture=refused.pictures[1])
    match = join(frame, chosen, "Nuclei.csv").match
    assert match.objects.label_ids.tolist() == [0] * 4 + ORDER
    assert match.sentences == (
        "Joined: the rows of ImageNumber 2.",
        "4 of 4 rows match a label of 'nuclei' by column 'ObjectNumber'.",
        "4 rows of other pictures are on the map, but in no image.",
    )


def test_pictures_are_no_matter_where_all_labels_differ(nuclei):
    frame = table(Image=["a", "a", "b", "b"], label=ORDER)
    found = join(frame, guess(nuclei))
    assert found.picture is None
    assert found.match.n_linked == 4


def test_nothing_is_linked_unasked_that_hardly_fits(nuclei):
    frame = table(label=[7, 20, 21, 22, 23])
    refused = join(frame, guess(nuclei), "other.csv")
    assert refused.match is None
    assert "only 1 of 5 rows of other.csv" in refused.refusal
    asked = join(frame, JoinRequest((nuclei,)), "other.csv")
    assert asked.match.n_linked == 1
    assert (
        "Of 'nuclei', 3 labels without a row (2, 3, 11), on no map."
        in asked.match.sentences[-1]
    )


def test_a_table_without_any_id_says_nothing_unasked(nuclei):
    assert join(table(note=[*"abcd"]), guess(nuclei)).refusal == ""
    asked = join(table(note=[*"abcd"]), JoinRequest((nuclei,)))
    assert "no column of labels" in asked.refusal


def read(path, request, **options):
    (result, found) = finish(load_joined(path, request, ReadOptions(**options)))
    return result.dataset, found


def test_a_chosen_column_is_no_measurement(nuclei, tmp_path):
    table(nuc=[*ORDER, 0]).to_csv(tmp_path / "t.csv", index=False)
    dataset, _ = read(tmp_path / "t.csv", JoinRequest((nuclei,), column="nuc"))
    assert dataset.var_names == ("area", "tone")
    assert dataset.kept.tolist() == [True] * 4 + [False]
    assert dataset.objects.label_ids.tolist() == ORDER
    assert dataset.provenance["linked"] == {"column": "nuc"}
    plain, _ = read(tmp_path / "t.csv", guess(nuclei))
    assert plain.source_objects is None
    assert plain.var_names == ("area", "tone", "nuc")


@pytest.mark.parametrize("name", ["deep_ids.csv", "deep_labels.csv"])
def test_deep_features_are_joined_by_the_table_beside_them(nuclei, tmp_path, name):
    X = np.random.default_rng(0).normal(size=(4, 6)).astype("f4")
    np.save(tmp_path / "deep.npy", X)
    pd.DataFrame({"label": ORDER}).to_csv(tmp_path / name, index=False)
    dataset, found = read(tmp_path / "deep.npy", guess(nuclei))
    assert found.match.column == "label"
    assert dataset.objects.label_ids.tolist() == ORDER
    np.testing.assert_array_equal(dataset.X, X)


def test_an_h5ad_may_be_joined_by_the_names_of_its_rows(nuclei, tmp_path):
    from anndata import AnnData

    rng = np.random.default_rng(0)
    AnnData(
        rng.normal(size=(4, 6)).astype("f4"),
        obs=pd.DataFrame(index=[str(i) for i in ORDER]),
    ).write_h5ad(tmp_path / "cells.h5ad")
    request = JoinRequest((nuclei,), column="(row names)")
    dataset, _ = read(tmp_path / "cells.h5ad", request)
    assert dataset.objects.label_ids.tolist() == ORDER
    assert "(row names)" not in dataset.obs
