import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from napari_embedding_game.data.columns import parse_integers
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.tables import (
    has_genes_in_rows,
    result_from_features,
)
from napari_embedding_game.data.raw_counts import looks_like_counts
from napari_embedding_game.data.read_options import ReadOptions
from worlds import read


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "name": [f"cell {i}" for i in range(20)],
            "area": rng.normal(100, 10, 20),
            "count": rng.integers(0, 50, 20),
            "type": ["B", "T"] * 10,
        }
    )


UMAP_10 = [f"UMAP_{axis}" for axis in range(1, 11)]  # no picture of the rows


def written(frame, path):
    if ".parquet" in path.name:
        frame.to_parquet(path, compression="gzip")
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(path.read_bytes()))
    else:
        frame.to_csv(path, sep="\t" if ".tsv" in path.name else ",", index=False)
    return path


def text(tmp_path, content, name="cells.csv"):
    path = tmp_path / name
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "parquet", "csv.gz", "tsv.gz", "parquet.gz"]
)
def test_every_format_gives_the_same(tmp_path, cells, ending):
    of_file = read(written(cells, tmp_path / f"cells.{ending}"))
    arrow = result_from_features(cells.convert_dtypes(dtype_backend="pyarrow"), "layer")
    for dataset in (of_file, arrow.dataset):
        assert dataset.var_names == ("area", "count")
        assert dataset.obs.dtypes.to_dict() == {"type": "category"}
        assert dataset.obs.index.tolist() == cells["name"].tolist()
    assert of_file.name == f"cells.{ending}"
    assert of_file.space == f"columns of cells.{ending}"
    np.testing.assert_allclose(dataset.profile[:, 0], cells["area"], rtol=1e-6)


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(3, 12), st.integers(1, 4)),
        elements=st.floats(-1e6, 1e6) | st.just(np.nan),
    )
)
def test_left_out_rows_never_shift_the_others(values):
    table = {f"c{i}": column for i, column in enumerate(values.T)}
    try:
        dataset = result_from_features(
            table, "cells", options=ReadOptions(missing="drop")
        ).dataset
    except DataError:
        return  # nothing left, or constant: asked elsewhere
    columns = [int(name[1:]) for name in dataset.var_names]
    np.testing.assert_allclose(
        dataset.profile, values[dataset.kept][:, columns].astype(np.float32)
    )
    assert np.isfinite(dataset.X).all()
    back = dataset.expand_to_source_rows(dataset.obs.index.astype(int), 0)
    np.testing.assert_array_equal(back[dataset.kept], np.flatnonzero(dataset.kept) + 1)


def test_semicolons_and_decimal_commas(tmp_path):
    dataset = read(text(tmp_path, "a;b\n1,5;2\n2,5;3\n4,5;7\n"))
    np.testing.assert_allclose(dataset.profile[:, 0], [1.5, 2.5, 4.5])
    spaced = read(text(tmp_path, 'id ; n; a ; "b"\n1; 03; 1,5; "x; y"\n2; 4; 0,5; z\n'))
    assert (spaced.var_names, list(spaced.obs)) == (("a",), ["id", "n", "b"])
    # Excel's own first line, and separators within quotation marks, part no names.
    dataset = read(text(tmp_path, "sep=;\na;b\n1,5;2\n2,5;3\n4,5;7\n"))
    assert dataset.var_names == ("a", "b")
    dataset = read(text(tmp_path, '"a, b,\nc";"d"\n1,5;2\n2,5;3\n4,5;7\n'))
    assert dataset.var_names == ("a, b,\nc", "d")
    # A point parts thousands there, and "e" and digits within an id are no exponent.
    ids = [f"f47ac10b-58cc-4372-a567-{i}e02123456789" for i in range(3)]
    rest = ["1.234,5;10;1.200", "987,0;2;7", "2,0;10;900"]
    lines = "\n".join(map(";".join, zip(ids, rest, strict=True)))
    dataset = read(text(tmp_path, f"Object ID;area;cluster;count\n{lines}\n"))
    np.testing.assert_array_equal(dataset.profile.T, [[1234.5, 987, 2], [1200, 7, 900]])
    assert dataset.obs["cluster"].tolist() == [10, 2, 10]
    for last, numbers in (("345", [1234, 3456, 345]), ("1,345", [1.234, 3.456, 1.345])):
        dataset = read(text(tmp_path, f"a;b\n0.5;1,234\n1.5;3,456\n2.5;{last}\n"))
        np.testing.assert_allclose(dataset.profile[:, 1], numbers)


@pytest.mark.parametrize(
    ("rows", "numbers"),
    [
        ("0,5\tx\n1,5\ty\n", [0.5, 1.5]),
        ("1,234\ta.5\n345\tb\n", [1.234, 345]),  # for all that is known
        ("0.5\t1,2-dichloro\n1.5\ta, 3,4\n", [0.5, 1.5]),
        ("1,234.5\tx\n987.0\ty\n", [1234.5, 987]),  # beyond doubt
        ("None\tNone\n0.5\tNone\n1.5\t007\n2\t012\n4\tx\n", [0.5, 1.5, 2, 4]),
        ("1\tDMSO\n" + "".join(f"{i}\tNone\n" for i in range(2, 12)), range(1, 12)),
        ("1\tNone\n2\tNone\n", [1, 2]),
        ("0.5\t007\n-1.#IND\t012\n#N/A N/A\t0\n2\t1\n", [0.5, 2]),
    ],
)
def test_commas_between_tabs(tmp_path, rows, numbers):
    path = text(tmp_path, "a\tb\n" + rows, "cells.tsv")
    dataset = read(path, missing="drop")
    assert dataset.var_names == ("a",)
    # Codes, and the treatment None, are what they are, but for who chooses them.
    texts = [row.split("\t")[1] for row in rows.splitlines()]
    assert dataset.source_obs["b"].tolist() == texts
    if texts[0] == "007":
        assert read(path, columns=["b"]).profile[:, 0].tolist() == [7, 12, 0, 1]
    np.testing.assert_allclose(dataset.profile[:, 0], numbers)


def test_row_names_as_r_writes_them(tmp_path):
    dataset = read(text(tmp_path, "a,b\nc1,1,2\nc2,2,3\n"))
    assert dataset.obs.index.tolist() == ["c1", "c2"]
    assert dataset.notes[0] == (
        "Taken as row names: the first value of each line, which has no heading."
    )
    assert dataset.var_names == ("a", "b")
    # A plate needs the wells.
    wells = read(text(tmp_path, "Metadata_Well,a\nA01,1\nB01,2\n"))
    assert wells.obs["Metadata_Well"].tolist() == ["A01", "B01"]
    counted = read(text(tmp_path, " ,a,b\n5,1,2\n6,2,3\n"))  # by ImageJ
    assert counted.obs.index.tolist() == ["5", "6"]
    # A label of None is none; others are what they are, beyond 2^53 too.
    for ids in ([9007199254740993, 9007199254740992], [3, 4]):
        for end in ("", ".5"):
            rows = "".join(f"{x},{i}{end},7\n" for i, x in enumerate([*ids, "None", 0]))
            path = text(tmp_path, f"id,a,b\n{rows}8,9,9\n")
            labelled = read(path, id_column="id").obs["id"]
            assert labelled[:2].tolist() == ids
            assert labelled.isna().tolist() == [False, False, True, False]
    numbered = read(text(tmp_path, "a,b,c\n1.5,1,2,0\n2.5,2,3,1\n"))
    assert numbered.obs.index.tolist() == ["1.5", "2.5"]
    told = read(text(tmp_path, "4.5,4.5\n1,2\n2,3\n")).notes[0]
    assert told.startswith("The numbers in the first line")


def test_separator_at_the_end_of_lines_is_not_taken_for_row_names(tmp_path):
    with pytest.raises(DataError, match="has a comma at the end of each line"):
        read(text(tmp_path, "a,b\n1,2,\n2,3,\n"))
    with pytest.raises(DataError, match="has a tab at the end of each line"):
        read(text(tmp_path, "a\tb\n1\t2\t\n2\t3\t\n", "cells.tsv"))
    # Numbers one after the other, from 0: what pandas makes of no names.
    with pytest.raises(DataError, match="has a comma at the end of each line"):
        read(text(tmp_path, "a,b\n0,2,\n1,3,\n2,5,\n"))
    with pytest.raises(DataError, match="has a comma at the end of each line"):
        read(text(tmp_path, '"a\nA"\n0,\n1,\n'))


def test_an_empty_line_of_a_single_column_is_a_row(tmp_path):
    dataset = read(text(tmp_path, "a\n1\n\n3\n4\n\n"), missing="drop")
    assert dataset.n_source_rows == 4
    assert dataset.obs.index.tolist() == ["1", "3", "4"]
    dataset = read(text(tmp_path, ' \n"a, b"\n1\n\n3\n4\n'), missing="drop")
    assert dataset.n_source_rows == 4
    # Among several columns it is none.
    assert read(text(tmp_path, "a,b\n1,2\n\n3,4\n")).X.shape == (2, 2)


def test_columns_of_parquet_that_are_nested_huge_or_called_alike(tmp_path):
    nested, ids = [{"x": 1, "y": 2}] * 3, [2**60 + 1, None, 2**60 + 3]
    columns = [[[1], [2], [3]], nested, [1.0, 2, 4], [3.0, 1, 0], ids, ids, nested]
    names = ["a", "s", "a.b", "s.z", "id", "id", "a.b"]
    pq.write_table(pa.table(columns, names), tmp_path / "cells.parquet")
    dataset = read(tmp_path / "cells.parquet")
    assert dataset.obs.columns.tolist() == ["id", "id-1"]
    for name in dataset.obs:
        assert parse_integers(dataset.obs[name]).tolist() == [ids[0], -1, ids[2]]
    told = "Not read, because they hold lists or nested values: a, s, a.b-1."
    assert told in dataset.notes
    named = pd.DataFrame(dataset.X, ["x", "y", "z"]).rename(columns=str)
    named.to_parquet(tmp_path / "cells.parquet")
    assert read(tmp_path / "cells.parquet").obs.index.tolist() == ["x", "y", "z"]
    twice = read(text(tmp_path, "id,area,id\n7,1.5,8\n8,2,9\n9,4,7\n"))
    assert twice.var_names == ("area",)  # and no second column of ids


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "csv.gz"])
def test_raw_counts_stay_as_they_are(tmp_path, counts, ending):
    frame = counts.to_df().astype(int)
    frame.insert(0, "cell", counts.obs_names)
    dataset = read(written(frame, tmp_path / f"cells.{ending}"))
    np.testing.assert_array_equal(dataset.X, counts.X.toarray())
    assert dataset.profile is dataset.X
    assert dataset.var_names == tuple(counts.var_names)
    assert looks_like_counts(dataset)
    assert any("Not standardised, because they look like" in n for n in dataset.notes)


def test_space_chooses_columns(tmp_path, cells, spaces):
    path = str(written(cells, tmp_path / "Cells.CSV"))
    dataset = read(path, space="count")
    assert dataset.var_names == ("count",)
    assert dataset.obs.columns.tolist() == ["area", "type"]
    assert read(path, space="area, count").var_names == ("area", "count")
    assert read(path, space="columns of Cells.CSV").X.shape == (20, 2)
    assert spaces(path) == ["columns of Cells.CSV"]
    with pytest.raises(DataError) as error:
        read(path, space="count, wight")
    assert str(error.value).startswith('Cells.CSV has no column "wight": it has area')


def test_text_among_numbers_is_named(tmp_path, cells):
    cells = cells.drop(columns="name")
    cells["area"] = cells["area"].astype(object)
    cells.loc[11, "area"] = "abc"
    with pytest.raises(DataError) as error:
        read(written(cells, tmp_path / "cells.csv"))
    assert str(error.value) == (
        'cells.csv has the text "abc" in row 12 of column area, where all other '
        "values are numbers: correct it, or leave the cell empty."
    )
    # Those that are not embedded may have any.
    dataset = read(tmp_path / "cells.csv", columns=("count",))
    assert dataset.obs["area"].iloc[11] == "abc"


def test_missing_values_name_row_and_column(tmp_path):
    path = text(tmp_path, "name,a,b\nx,1,2\ny,,3\nz,2,5\n")
    with pytest.raises(DataError, match=r'1 of 3 rows.* row 2 \("y"\), column a'):
        read(path)
    dataset = read(path, missing="drop")
    assert dataset.obs.index.tolist() == ["x", "z"]
    assert dataset.source_obs_names.tolist() == ["x", "y", "z"]
    np.testing.assert_allclose(dataset.X, [[-1, -1], [1, 1]])
    assert any("1 of 3 rows left out" in note for note in dataset.notes)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty: there is nothing in the file"),
        ("  \n \n", "could not be read as a .csv table"),
        ("a,b\n", r"is empty \(0 rows"),
        ("a,b\n1,2\n", "only one row"),
        ("a,b\n1,2\n1,2\n1,2\n", "is constant: all 3 rows"),
        ("a,b\n1,\n,1\n2,4\n", "2 of 3 rows.* no map is left"),
        ("a,b\n,\n,\n,\n", r"no value in any of its columns of numbers \(a, b\)"),
        ("a,b\n1,2\n1,2,3,4\n", r"Expected 2 fields in line 3, saw 4\): put"),
        ('a,b\n1,2\n3,"4\n5,6\n', "EOF inside string starting at row 2.*close all"),
    ],
)
def test_tables_that_give_no_map(tmp_path, content, sentence):
    with pytest.raises(DataError, match=rf"cells\.csv .*{sentence}"):
        read(text(tmp_path, content))


def test_tiny_and_huge_units_are_standardised():
    table = {"a": [1e-300, 2e-300, 3e-300], "b": [1e300, 2e300, 3e300]}
    X = result_from_features(table, "cells").dataset.X
    np.testing.assert_allclose(X, [[-1.2247449] * 2, [0] * 2, [1.2247449] * 2], 1e-5)


def test_places_are_not_embedded_beside_measurements():
    rng = np.random.default_rng(0)
    names = ["x", "centroid-0", "bbox_y1", "nucleus_bbox_x0", "area", "tone", "image"]
    names += ["Batch", "my_donor", "day", "Row", "leiden_0.5", "Position X [µm]"]
    names += ["POSITION_T", "bbox_min_row", "Nuclei_Location_CenterMassIntensity_X_DNA"]
    names += ["umap0", "umap1", "Position", "XM", "CenterX_global_px", "leiden_res0_25"]
    names += ["bbox_area", "positivity", "Num clusters", *UMAP_10]
    frame = pd.DataFrame(rng.integers(0, 90, (10, len(names))), columns=names)
    dataset = result_from_features(frame, "cells").dataset
    measures = ["area", "tone", "bbox_area", "positivity", "Num clusters", *UMAP_10]
    assert dataset.var_names == (*measures,)
    assert {"x", "centroid-0", "bbox_y1", "image"} <= set(dataset.obs)
    assert dataset.notes[0] == (
        "Not embedded unless chosen, as the name says that it is no measure: "
        "image, Batch, my_donor, day, Row, leiden_0.5 and 14 more."
    )
    assert result_from_features(
        frame, "cells", options=ReadOptions(columns=["x", "area"])
    ).dataset.var_names == ("x", "area")
    alone = result_from_features(frame[["x", "centroid-0", "area"]], "cells").dataset
    assert alone.var_names == ("x", "centroid-0", "area")


@pytest.mark.parametrize(
    ("columns", "rows", "asks"),
    [
        (["gene", "a", "b", "c"], ["x", "y"], True),
        (["Gene Symbol", "a", "b", "c"], ["x", "y"], True),
        (["", "a", "b", "c"], ["ENSG00000141510.5", "ENSMUSG00000059552"], True),
        (["", "s1_AAACCTGAGAAACCAT.1", "s1_AAACCTGAGAAACCGC.1", "c"], ["x", "y"], True),
        (["gene", "a", "b", "c"], [1.5, 2.5], False),  # of one gene, in cells
        (["cell", "GATTACA", "CAT", "TAG"], ["x", "y"], False),
        (["cell", "CD3E", "MT-CO1", "T"], ["AAACCTGAGAAACCAT", "CCC"], False),
    ],
)
def test_which_tables_may_have_genes_in_rows(columns, rows, asks):
    frame = pd.DataFrame([[row, 1, 2, 3] for row in rows], columns=columns)
    assert has_genes_in_rows(frame) is asks


@pytest.mark.parametrize("heading", ["donor,a,b", "donor,a,b,n"])
def test_codes_that_begin_with_0_late_in_a_long_table_keep_it(tmp_path, heading):
    lines = [f"{1000 + i % 9000},{i / 7},{-i / 3}" for i in range(6_000)]
    lines += [f"00{i},{i},0.5" for i in range(10, 20)]
    if heading.endswith("n"):  # which counts, and has no 0 before it
        lines = [f"{line},{i % 7}" for i, line in enumerate(lines)]
    text = "\n".join([heading, *lines])
    assert text.index("\n0010") > 65_536
    (tmp_path / "cells.csv").write_text(text)
    dataset = read(tmp_path / "cells.csv")
    assert dataset.obs["donor"].iloc[[0, -1]].tolist() == ["1000", "0019"]
    assert dataset.var_names == tuple(heading.split(",")[1:])
