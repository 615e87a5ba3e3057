"""Flow and mass cytometry: channels, cofactors, compensation, events by number."""

import numpy as np
import pytest
from flowio import FlowData, create_fcs

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import read_in_stages
from napari_embedding_game.data.stages import finish
from worlds import read

CD3, CD19 = "CD3 (FITC-A)", "CD19 (PE-A)"


@pytest.fixture
def flow(tmp_path):
    worlds.cytometry(tmp_path / "tube.fcs")
    return tmp_path / "tube.fcs"


def stored(path):
    return FlowData(path).as_array()


def test_markers_are_embedded_and_compensated_and_the_rest_is_metadata(flow):
    result = finish(read_in_stages(flow, ReadOptions()))
    data = result.dataset
    assert data.var_names == (CD3, CD19)
    assert list(data.obs) == ["FSC-A", "Time"]
    assert list(result.columns) == ["FSC-A", CD3, CD19, "Time"]
    assert data.obs.index[0] == "1"
    assert data.obs.index[-1] == "300"
    assert data.space == result.spaces[0] == "arcsinh(x / 150)"
    assert any("Compensated" in note for note in data.notes)
    leaking = np.array([[1.0, 0.4], [0.1, 1.0]])
    freed = stored(flow)[:, 1:3] @ np.linalg.inv(leaking)
    np.testing.assert_allclose(data.X, np.arcsinh(freed / 150), rtol=1e-4, atol=1e-5)


def test_of_a_pulse_the_area_is_on_the_map_and_the_rest_colours_it(tmp_path):
    """Markers are not counted three times, whichever detectors have which words."""
    detectors = {
        "FITC-A": "CD3",
        "FITC-H": "CD3",
        "FITC-W": "CD3",
        "APC-Cy7-H": "CD4",  # without an area
        "FL2 INT": "CD8",
        "FL2 PEAK": "CD8",
        "FSC-A": "",
        "FSC-H": "",
    }
    values = np.random.default_rng(0).gamma(2, 500, (40, len(detectors)))
    path = tmp_path / "pulses.fcs"
    with open(path, "wb") as file:
        create_fcs(file, values.ravel().tolist(), [*detectors], [*detectors.values()])
    data = read(path)
    assert data.var_names == ("CD3 (FITC-A)", "CD4 (APC-Cy7-H)", "CD8 (FL2 INT)")
    others = ["CD3 (FITC-H)", "CD3 (FITC-W)", "CD8 (FL2 PEAK)", "FSC-A", "FSC-H"]
    assert list(data.obs) == others
    assert any("3 channels of height or width" in note for note in data.notes)
    assert data.row_noun == "event"
    chosen = read(path, columns=["CD3 (FITC-A)", "CD3 (FITC-H)"])
    assert chosen.var_names == ("CD3 (FITC-A)", "CD3 (FITC-H)")
    assert not any("height" in note for note in chosen.notes)


def test_mass_has_its_own_cofactor_and_values_come_as_stored(tmp_path):
    path = tmp_path / "mass.fcs"
    worlds.cytometry(path, is_mass=True)
    data = read(path)
    assert data.space == "arcsinh(x / 5)"
    assert data.var_names == ("CD3 (Er168Di)", "CD19 (Yb174Di)")
    assert list(data.obs) == ["Event_length", "Time"]
    chosen = read(path, space="values as stored", columns=["Time", "CD3 (Er168Di)"])
    assert chosen.var_names == ("CD3 (Er168Di)", "Time")
    np.testing.assert_allclose(chosen.X, stored(path)[:, [1, 3]], rtol=1e-6)
    mixed = read(path, columns=["Time", "CD3 (Er168Di)"])
    np.testing.assert_allclose(mixed.X.std(axis=0), 1, rtol=1e-4)
    with pytest.raises(DataError, match="choose one of arcsinh"):
        read(path, space="logicle")


@pytest.mark.parametrize(
    "spill", ["2,FITC-A,PE-A,1,0,0", "1,APC-A,1", "2,FITC-A,PE-A,1,1,1,1", "x", "-1"]
)
def test_a_matrix_that_does_not_fit_is_a_note(tmp_path, spill):
    path = tmp_path / "tube.fcs"
    worlds.cytometry(path, spill=spill)
    data = read(path)
    assert any("Not compensated" in note for note in data.notes)
    freed = np.arcsinh(stored(path)[:, 1:3] / 150)
    np.testing.assert_allclose(data.X, freed, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"$TOT|300", b"$TOT|900"),
        (b"$PAR|4", b"$PAR|0"),
        (b"$DATATYPE|F", b"$DATATYPE|Z"),
        (b"$BYTEORD|1,2,3,4", b"$BYTEORD|3,4,1,2"),
        (b"$P1R|", b"$P1R|x"),
        (b"FCS3.1", b"GIF89a"),
        (b"|$BEGIN", b"(|$BEGIN"),
    ],
)
def test_what_does_not_fit_together_is_a_sentence(flow, old, new):
    text = flow.read_bytes()
    delimiter = text[int(text[10:18]) :][:1]
    old, new = (part.replace(b"|", delimiter) for part in (old, new))
    assert old in text
    flow.write_bytes(text.replace(old, new, 1))
    with pytest.raises(DataError, match=r"tube\.fcs .*\.$"):
        read(flow)


def test_files_of_a_folder_are_samples_by_the_channels_of_all(flow, tmp_path):
    worlds.cytometry(tmp_path / "other.FCS", n=200, spill="x")
    data = read(tmp_path)
    assert list(data.obs["sample"].cat.categories) == ["other", "tube"]
    assert data.obs.index[[0, 200, -1]].tolist() == ["other 1", "tube 1", "tube 300"]
    np.testing.assert_array_equal(data.X[200:], read(flow).X)
    assert any(note.startswith("other.FCS: Not compensated") for note in data.notes)
    worlds.cytometry(tmp_path / "mass.fcs", is_mass=True)
    with pytest.raises(DataError, match=r"no stained channel in common.*\.$"):
        read(tmp_path)
