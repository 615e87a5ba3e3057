from pathlib import Path

import h5py
import numpy as np
import pytest
from anndata.io import read_elem, write_elem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_embedding_game.data.export.result import storable, versions


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "none"),
        (True, True),
        (3, 3),
        ("a", "a"),
        (Path("/home/someone/cells.h5ad"), "cells.h5ad"),
        (ValueError, "<class 'ValueError'>"),
        ({"a/b": {1: None}}, {"a_b": {"1": "none"}}),
    ],
)
def test_storable(value, expected):
    assert storable(value) == expected


def test_storable_sequences():
    assert storable((1, 2.5)).tolist() == [1, 2.5]
    assert storable(["a", None]).tolist() == ["a", "none"]
    assert storable([]).tolist() == []


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats()
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.sampled_from(["seed", "lr", "notes"]), values))
def test_whatever_is_storable_can_be_stored(tmp_path, parameters):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        write_elem(file, "parameters", storable(parameters))
        assert set(read_elem(file["parameters"])) == set(parameters)


def test_versions_name_what_computed():
    found = versions()
    assert found["numpy"] == np.__version__
    assert "torch" in found


def test_versions_tell_what_is_not_installed(monkeypatch):
    monkeypatch.setattr(
        "napari_embedding_game.data.export.result._VERSIONS_OF", ("no-such",)
    )
    assert versions() == {"no-such": "not installed"}
