"""Rows of a table find their objects by an id alone."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from anndata import AnnData

from napari_embedding_game.data import label_join
from napari_embedding_game.data.formats.tables import result_from_features
from napari_embedding_game.data.images.join import (
    JoinRequest,
    find_id_columns,
    join_with_labels,
)
from napari_embedding_game.data.label_join import load_with_labels
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import Stage, finish

ORDER = [7, 2, 11, 3]
"""The labels of the image, in an order of their own."""


def table(**columns):
    n = len(next(iter(columns.values())))
    rng = np.random.default_rng(0)
    return pd.DataFrame({"area": rng.random(n) + 1, "tone": rng.random(n), **columns})


def matched(frame, labels, first_axis="z", **options):
    request = JoinRequest("nuclei", labels, first_axis, **options)
    return join_with_labels(frame, request, "t.csv")


def ids(found):
    return found.objects.label_ids.tolist()


@pytest.mark.parametrize(
    "name",
    [
        "label", "Label", "LABEL", "label_id", "Label ID", "LabelIndex", "index",
        "ObjectNumber", "Number_Object_Number", "Nuclei_Number_Object_Number",
        "object_id", "ObjectID", "instance_id", "cell_id", "nucleus_number", "id",
        "nuclei_label", "Object",
    ],
)  # fmt: skip
def test_a_known_name_in_any_case_joins(labels, name):
    found = matched(table(**{name: ORDER}), labels, is_guess=True)
    assert ids(found) == ORDER
    assert found.columns == [name]
    assert found.sentences == (
        f"4 of 4 rows match a label of 'nuclei' by column '{name}'.",
    )


@pytest.mark.parametrize("kind", [float, str, object, "Int64", "string"])
def test_numbers_of_any_type_are_labels(labels, kind):
    frame = table(Label=pd.Series(ORDER, dtype="Int64").astype(kind))
    assert ids(matched(frame, labels)) == ORDER


def test_without_an_id_nothing_is_linked_but_by_a_chosen_column(labels):
    frame = table(nuc=ORDER)
    assert "no column of labels" in matched(frame, labels).refusal
    assert matched(frame, labels, is_guess=True).refusal == ""
    assert find_id_columns(frame, include_any_name=True) == ["nuc"]
    assert ids(matched(frame, labels, column="nuc")) == ORDER
    some = table(label=[7, 97, 98, 99], id=ORDER)
    assert matched(some, labels).column == "id"  # by which most rows are objects
    refusal = matched(frame, labels, column="area").refusal
    assert 'column "area" of t.csv holds no whole numbers' in refusal


def test_rows_that_match_are_linked_and_the_others_told(labels):
    found = matched(table(label=[7, 2, 99, 3, np.nan]), labels)
    assert ids(found) == [7, 2, 0, 3, 0]
    assert not found.left_out.any()
    assert found.sentences == (
        "3 of 5 rows match a label of 'nuclei' by column 'label'.",
        "1 row of labels that 'nuclei' has not: 99.",
        "1 row without a label.",
        "Without a row, on no map: 1 label (11).",
    )
    found = matched(table(label=[7, 2, 2, 3]), labels)
    assert ids(found) == [7, 0, 0, 3]
    assert "2 rows with the label of another row: 2." in found.sentences
    assert "none of 8 rows" in matched(table(label=ORDER * 2), labels).refusal


def test_nothing_is_linked_unasked_that_hardly_fits(labels):
    frame = table(label=[7, 20, 21, 22, 23])
    assert "only 1 of 5 rows of t.csv" in matched(frame, labels, is_guess=True).refusal
    assert ids(matched(frame, labels)) == [7, 0, 0, 0, 0]
    assert "none of 2 rows" in matched(table(label=[20, 21]), labels).refusal


def test_pictures_with_the_same_labels_are_left_to_the_person(labels):
    frame = table(ImageNumber=[1] * 4 + [2] * 4, ObjectNumber=ORDER * 2)
    refused = matched(frame, labels, is_guess=True)
    assert refused.objects is None
    assert "rows of 2 pictures (column 'ImageNumber')" in refused.refusal
    assert refused.pictures == [("ImageNumber", "1"), ("ImageNumber", "2")]
    found = matched(frame, labels, picture=refused.pictures[1])
    assert ids(found) == [0] * 4 + ORDER
    assert any("4 rows of other pictures" in one for one in found.sentences)
    other = table(Image=["a", "a", "b", "b"], label=ORDER)
    assert ids(matched(other, labels, is_guess=True)) == ORDER
    stack = matched(frame, np.stack([labels, labels]), is_guess=True)
    assert stack.objects.boxes[:, 0].tolist() == [0] * 4 + [1] * 4
    assert not stack.pictures
    frame = table(label=[7, 2, 7, 3, 11])
    assert "only 3 of 5" in matched(frame, labels, is_guess=True).refusal
    regions = matched(frame.assign(region=[*"AABBA"]), labels, is_guess=True)
    assert regions.pictures == [("region", "A"), ("region", "B")]


def test_rows_that_lie_elsewhere_are_not_linked_unasked(tmp_path):
    grid = np.arange(1, 26).reshape(5, 5)
    y, x = np.indices(grid.shape).reshape(2, 25)
    frame = table(label=grid.ravel(), X=7.5 * x + 100)
    frame["Y"] = pd.Series(y, dtype="Int64").where(y > 0).astype("category")
    pixel = np.ones((4, 4), int)
    own = np.kron(grid, pixel)
    assert matched(frame, own, is_guess=True).objects is not None
    long, turned = np.arange(1, 51).reshape(2, 25), table(label=range(1, 51))
    y, x = np.indices(long.shape).reshape(2, 50)
    turned = turned.assign(X=x + y, Y=x - y)
    assert matched(turned, np.kron(long, pixel), is_guess=True).objects is not None
    others = np.kron(np.roll(grid.T, 7), pixel)
    refused = matched(frame, others, is_guess=True)
    assert "t.csv has other positions than its objects. Choose" in refused.refusal
    told = "25 rows with another position than the object."
    assert told in matched(frame, others).sentences
    spatial = {"spatial": np.indices(grid.shape).reshape(2, 25).T}
    cells = AnnData(np.eye(25), obs=frame[["label"]].rename(str), obsm=spatial)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    of_h5ad = [
        read(tmp_path / "cells.h5ad", x, is_guess=True)[1] for x in (own, others)
    ]
    assert [found.objects is None for found in of_h5ad] == [False, True]
    frame["X"], frame["Y"] = 1, 2  # which tells nothing
    assert matched(frame, others, is_guess=True).objects is not None


@pytest.fixture
def numbered():
    """A label image of the labels 1 to 5."""
    return np.kron(np.arange(6), np.ones((4, 4), int))


def test_rows_counted_from_0_are_no_labels_unless_somebody_says_so(numbered):
    frame = table(index=range(5))
    assert "may only count the rows" in matched(frame, numbered).refusal
    found = matched(frame, numbered, column="index")
    assert ids(found) == [0, 1, 2, 3, 4]
    assert found.left_out.tolist() == [True] + [False] * 4
    assert ids(matched(table(index=range(5), id=[5, 4, 3, 2, 1]), numbered))[0] == 5
    for some in (range(4), range(7)):  # rows were left out, or are of other images too
        assert "may only count the rows" in matched(table(id=some), numbered).refusal
    gaps = np.where(numbered == 2, 0, numbered)
    assert "may only count the rows" in matched(table(id=range(1, 5)), gaps).refusal


def test_a_row_about_the_background_is_on_no_map(numbered):
    found = matched(table(index=range(6)), numbered)
    assert ids(found) == [0, 1, 2, 3, 4, 5]
    assert found.sentences[0].startswith("5 of 5 rows match a label")
    assert "1 row about the background, left out." in found.sentences
    dataset = result_from_features(
        table(index=range(6)), "t", ReadOptions(id_column=found.column)
    ).dataset
    assert dataset.kept.tolist() == [False] + [True] * 5


def test_in_a_time_series_a_label_is_another_object_in_each_picture(labels):
    movie = np.stack([labels, np.where(labels == 3, 0, labels), labels])
    frame = table(label=[3, 3, 7, 7], Frame=[2, 0, 1, 2])
    found = matched(frame, movie, "time")
    assert ids(found) == [3, 3, 7, 7]
    told = "Without a row, on no map: 7 labels (2, 7, 11)."
    assert found.sentences[-1] == told  # 7 in the first picture
    assert found.objects.boxes[:, 0].tolist() == [2, 0, 1, 2]
    from_1 = frame.assign(Frame=[3, 1, 2, 3])
    assert matched(from_1, movie, "time").objects.boxes[:, 0].tolist() == [2, 0, 1, 2]
    early = np.stack([np.where(labels == 11, 0, labels), *movie[1:]])
    from_1 = table(label=[2, 3, 7, 2, 7, 11], Frame=[1, 1, 1, 2, 2, 2])
    assert matched(from_1, early).objects.boxes[:, 0].tolist() == [0, 0, 0, 1, 1, 1]
    frame.loc[0, "Frame"] = 1  # where there is no object 3
    assert ids(matched(frame, movie, "time")) == [0, 3, 7, 7]
    assert 'no column "frame"' in matched(table(label=ORDER), movie, "time").refusal
    frame.loc[0, "Frame"] = 2  # of a file nobody says that it is about a series
    assert matched(frame, movie).objects.boxes[:, 0].tolist() == [2, 0, 1, 2]
    both = pd.concat([frame.assign(image="a"), frame.assign(image="b")])
    found = matched(both, movie, picture=("image", "b"))
    assert ids(found) == [0, 0, 0, 0, 3, 3, 7, 7]
    from_1 = frame.assign(Frame=[3, 1, 2, 3])
    longer = from_1.assign(image="b", Frame=from_1["Frame"] + 17)
    of_a = pd.concat([from_1.assign(image="a"), longer])
    found = matched(of_a, movie, picture=("image", "a"))
    assert found.objects.boxes[:4, 0].tolist() == [2, 0, 1, 2]
    stack = matched(table(label=ORDER), np.stack([labels, labels]))
    assert stack.objects.boxes[0].tolist() == [0, 0, 0, 2, 6, 8]


def test_what_an_earlier_map_wrote_is_not_embedded():
    frame = table(embedding_game_x=[0.5, 1, 2, 4], embedding_game_pressure=range(4))
    assert result_from_features(frame, "t").dataset.var_names == ("area", "tone")


def read(path, labels, **request):
    request = JoinRequest("nuclei", labels, **request)
    result = finish(load_with_labels(path, request, ReadOptions()))
    return result.dataset, result.join


def test_ids_are_exact_and_the_file_is_read_once(labels, tmp_path, monkeypatch):
    far = 2**53 + 1  # more than floats tell apart, which numbers with gaps become
    named = table(nuc=[far + label for label in [*ORDER, 12]])
    named["nuc"] = named["nuc"].astype("Int64").where(named["nuc"] != far + 12)
    named.to_csv(tmp_path / "t.csv")
    pixels, paths = np.where(labels, labels.astype(int) + far, 0), []

    def read_here(path, read):
        paths.append(path)
        yield Stage("Reading")
        return read(path)

    monkeypatch.setattr(label_join, "read_in_process", read_here)
    dataset, found = read(tmp_path / "t.csv", pixels, column="nuc")
    assert (dataset.objects.label_ids - far).tolist()[:4] == ORDER
    assert found.columns == ["nuc", "(row names)"]
    assert dataset.var_names == ("area", "tone")
    assert paths == [tmp_path / "t.csv"]
    blanks = (tmp_path / "t.csv").read_text().replace(",9007", ", 9007")
    (tmp_path / "t.csv").write_text(blanks)
    dataset, _ = read(tmp_path / "t.csv", pixels, column="nuc")
    assert (dataset.objects.label_ids - far).tolist()[:4] == ORDER
    plain = pa.Table.from_pandas(named, preserve_index=False)
    pq.write_table(plain.replace_schema_metadata(None), tmp_path / "t.parquet")
    dataset, _ = read(tmp_path / "t.parquet", pixels, column="nuc")
    assert (dataset.objects.label_ids - far).tolist()[:4] == ORDER
    table(label=ORDER).set_index("label").to_parquet(tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet", labels)[0].objects.label_ids.tolist() == ORDER
    table(label=ORDER).rename_axis("cell").to_parquet(tmp_path / "t.parquet")
    assert "cell" not in read(tmp_path / "t.parquet", labels)[0].var_names


def test_a_chosen_column_is_no_measurement(labels, tmp_path):
    table(nuc=[*ORDER, 0]).to_csv(tmp_path / "t.csv", index=False)
    dataset, _ = read(tmp_path / "t.csv", labels, column="nuc")
    assert dataset.var_names == ("area", "tone")
    assert dataset.kept.tolist() == [True] * 4 + [False]
    assert dataset.objects.label_ids.tolist() == ORDER
    assert dataset.provenance["linked"] == {"column": "nuc"}
    plain, _ = read(tmp_path / "t.csv", labels, is_guess=True)
    assert plain.source_objects is None
    assert plain.var_names == ("area", "tone", "nuc")


def test_arrays_and_anndata_are_joined_too(labels, tmp_path):
    X = np.random.default_rng(0).normal(size=(4, 6)).astype("f4")
    np.savez(tmp_path / "deep.npz", X=X, label=ORDER)
    dataset, _ = read(tmp_path / "deep.npz", labels, is_guess=True)
    assert dataset.objects.label_ids.tolist() == ORDER
    np.testing.assert_array_equal(dataset.X, X)
    obs = pd.DataFrame(index=[str(i) for i in ORDER])
    AnnData(X, obs=obs).write_h5ad(tmp_path / "cells.h5ad")
    dataset, _ = read(tmp_path / "cells.h5ad", labels, column="(row names)")
    assert dataset.objects.label_ids.tolist() == ORDER
    assert "(row names)" not in dataset.obs
    named = table(of=[*"abcd"]).set_index(pd.Index(ORDER, name=" "))  # by ImageJ
    named.to_csv(tmp_path / "Results.csv")
    dataset, _ = read(tmp_path / "Results.csv", labels, column="(row names)")
    assert dataset.objects.label_ids.tolist() == ORDER
