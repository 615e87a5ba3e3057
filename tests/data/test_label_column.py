"""Rows of a table find their objects by an id alone."""

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.tables import from_features
from napari_embedding_game.data.images.crops import Thumbnails
from napari_embedding_game.data.images.label_column import (
    is_napari_table,
    label_ids,
    linked,
    match_rows,
    possible_id_columns,
    share_shown,
)

ORDER = [7, 2, 11, 3]
"""The labels of the image, in an order of their own."""


def table(**columns):
    n = len(next(iter(columns.values())))
    rng = np.random.default_rng(0)
    return pd.DataFrame({"area": rng.random(n) + 1, "tone": rng.random(n), **columns})


@pytest.mark.parametrize(
    "name",
    [
        "label", "Label", "LABEL", "label_id", "Label ID", "LabelIndex", "index",
        "ObjectNumber", "Number_Object_Number", "Nuclei_Number_Object_Number",
        "object_id", "ObjectID", "instance_id", "cell_id", "nucleus_number", "id",
        "nuclei_label",
    ],
)  # fmt: skip
def test_a_known_name_in_any_case_joins(labels, name):
    match = match_rows(table(**{name: ORDER}), labels)
    assert match.objects.label_ids.tolist() == ORDER
    assert match.sentences == (
        f"4 of 4 rows match a label of the labels by column '{name}'.",
    )


@pytest.mark.parametrize("kind", [float, str, object, "Int64", "string"])
def test_numbers_of_any_type_are_labels(labels, kind):
    frame = table(Label=pd.Series(ORDER, dtype="Int64").astype(kind))
    assert match_rows(frame, labels).objects.label_ids.tolist() == ORDER


def test_without_an_id_nothing_is_linked_though_there_are_as_many_rows(labels):
    with pytest.raises(DataError, match=r"no column of labels.*Rows by"):
        match_rows(table(note=list("abcd")), labels)


def test_a_column_may_be_chosen(labels):
    frame = table(nuc=ORDER)
    assert possible_id_columns(frame) == ["nuc"]
    assert match_rows(frame, labels, "nuc").objects.label_ids.tolist() == ORDER
    with pytest.raises(DataError, match='no column "area" of whole numbers'):
        match_rows(frame, labels, "area")


def test_rows_that_match_are_linked_and_the_others_told(labels):
    match = match_rows(table(label=[7, 2, 99, 3, np.nan]), labels)
    assert match.objects.label_ids.tolist() == [7, 2, 0, 3, 0]
    assert match.objects.present.tolist() == [True, True, False, True, False]
    assert not match.left_out.any()
    assert match.sentences == (
        "3 of 5 rows match a label of the labels by column 'label'.",
        "Of labels that the labels has not: 1 row (99), on the map, but in no image.",
        "1 row without a label, on the map only.",
        "Of the labels, 1 label without a row (11), on no map.",
    )


def test_two_rows_of_one_label_are_linked_with_none(labels):
    match = match_rows(table(label=[7, 2, 2, 3]), labels)
    assert match.objects.label_ids.tolist() == [7, 0, 0, 3]
    assert (
        "2 rows with the label of another one (2), so they are linked with no object"
        in match.sentences[1]
    )


def test_a_table_of_several_images_is_refused(labels):
    frame = table(ObjectNumber=ORDER * 2, ImageNumber=[1] * 4 + [2] * 4)
    with pytest.raises(DataError, match=r"keep one row for each object, of one image"):
        match_rows(frame, labels)


def test_another_column_that_would_match_is_told(labels):
    match = match_rows(table(index=[2, 3, 7, 11], label=ORDER), labels)
    assert match.objects.label_ids.tolist() == ORDER
    assert match.sentences[-1].startswith("'index' would match other rows: choose it")


@pytest.fixture
def numbered():
    """A label image of the labels 1 to 5."""
    return np.kron(np.arange(6), np.ones((4, 4), int))


def test_rows_counted_from_0_are_no_labels_unless_somebody_says_so(numbered):
    frame = table(index=range(5))
    with pytest.raises(DataError, match="may only count the rows"):
        match_rows(frame, numbered)
    match = match_rows(frame, numbered, "index")
    assert match.objects.label_ids.tolist() == [0, 1, 2, 3, 4]
    assert match.left_out.tolist() == [True] + [False] * 4


@pytest.mark.parametrize("has_index", [True, False])
def test_row_0_may_be_the_background(numbered, has_index):
    frame = table(index=range(6)).astype({"area": float})
    frame.loc[0, ["area", "tone"]] = np.nan
    if not has_index:
        frame = frame.drop(columns="index")
    match = match_rows(frame, numbered)
    assert match.objects.label_ids.tolist() == [0, 1, 2, 3, 4, 5]
    assert match.left_out.tolist() == [True] + [False] * 5
    assert match.sentences[0].startswith("5 of 5 rows match a label")
    assert "1 row about the background" in match.sentences[1]
    dataset = from_features(frame, "cells", left_out=match.left_out)
    assert dataset.X.shape == (5, 2)
    assert dataset.kept.tolist() == [False] + [True] * 5


def test_napari_s_own_rule_needs_an_empty_row_0(numbered):
    frame = table(note=["", *"abcde"])
    assert not is_napari_table(frame, 5)
    frame.loc[0, ["area", "tone"]] = 0
    assert is_napari_table(frame, 5)
    assert not is_napari_table(frame, 6)
    assert label_ids(frame).tolist() == [0, 1, 2, 3, 4, 5]


def test_in_a_time_series_a_label_is_another_object_in_each_picture(labels):
    movie = np.stack([labels, np.where(labels == 3, 0, labels), labels])
    frame = table(label=[3, 3, 7, 7], Frame=[2, 0, 1, 2])
    match = match_rows(frame, movie, first_axis="time")
    assert match.objects.label_ids.tolist() == [3, 3, 7, 7]
    assert match.objects.boxes[:, 0].tolist() == [2, 0, 1, 2]
    frame.loc[0, "Frame"] = 1  # where there is no object 3
    present = match_rows(frame, movie, first_axis="time").objects.present
    assert present.tolist() == [False, True, True, True]
    with pytest.raises(DataError, match='no column "frame"'):
        match_rows(table(label=ORDER), movie, first_axis="time")


def test_in_a_stack_a_label_is_one_object(labels):
    match = match_rows(table(label=ORDER), np.stack([labels, labels]))
    assert match.objects.boxes[0].tolist() == [0, 0, 0, 2, 6, 8]


def test_rows_that_are_no_object_are_in_no_picture(labels):
    frame = table(label=[7, 99, 11])
    dataset = linked(from_features(frame, "t"), match_rows(frame, labels))
    objects = dataset.objects
    assert not Thumbnails([], labels, objects)[1].any()
    assert Thumbnails([], labels, objects)[0].any()
    assert share_shown(labels, objects) == 1


def test_what_an_earlier_map_wrote_is_not_embedded():
    frame = table(embedding_game_x=[0.5, 1, 2, 4], embedding_game_pressure=range(4))
    assert from_features(frame, "t").var_names == ("area", "tone")
