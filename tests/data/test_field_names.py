"""What the names of image files tell of plate, well, field and channel."""

import pytest

from napari_embedding_game.data.images.folder import parse_file_name
from napari_embedding_game.data.wells import (
    find_smallest_plate_format,
    parse_row,
    parse_well,
    well_name,
)


@pytest.mark.parametrize(
    ("stem", "plate", "well", "field", "channel", "shared"),
    [
        ("A01_s1_w1", "", "A01", "1", "w1", "A01_s1"),
        ("plate1_B03_field2", "plate1", "B03", "2", "", "plate1_B03_field2"),
        ("r01c02f03", "", "A02", "3", "", "r01c02f03"),
        ("Row1_Col2_F3", "", "A02", "3", "", "Row1_Col2_F3"),
        ("B - 03(fld 1 wv DAPI - DAPI)", "", "B03", "1", "", None),
        ("D0_A01_s1", "", "A01", "1", "", "D0_A01_s1"),  # of the first day
        ("donor A - 12_B04", "", "B04", "", "", "donor A - 12_B04"),
        ("r02c11f03p01-ch2sk1fk1fl1", "", "B11", "3", "ch2", "r02c11f03p01sk1fk1fl1"),
        ("Exp_plate-7_AF48_s09", "plate-7", "AF48", "9", "", "Exp_plate-7_AF48_s09"),
        ("well_b07_site 4", "", "B07", "4", "", "well_b07_site 4"),
        ("D5", "", "D05", "", "", "D5"),
        ("C03f12", "", "C03", "12", "", "C03f12"),
        ("x_B03_T0001F002L01A01Z01C02", "", "B03", "2", "C02", None),
        ("B02_C2", "", "B02", "", "C2", "B02"),
        ("nuclei", "", None, "", "", "nuclei"),
        ("0021", "", None, "", "", "0021"),
        ("T12_mouse3", "", None, "", "", "T12_mouse3"),
    ],
)
def test_names_of_common_microscopes(stem, plate, well, field, channel, shared):
    told = parse_file_name(stem)
    found = [told[key] for key in ("plate", "well", "field", "channel")]
    assert found == [plate, well or "", field, channel]
    if shared is not None:
        assert told["stem"] == shared


def test_channels_of_one_field_share_a_name():
    stems = ["A01_s1_w1", "A01_s1_w2", "A01_w3_s1"]
    assert {parse_file_name(stem)["stem"] for stem in stems} == {"A01_s1"}
    long = "B02_s1_w2A1B2C3D4-0000-1111-2222-333344445555"
    assert parse_file_name(long)["stem"] == "B02_s1"


def test_wells_in_any_spelling():
    assert parse_well("b3") == parse_well(" B-03 ") == parse_well("B003") == (1, 2)
    assert parse_well("Q1") == (16, 0)  # of 1,536 wells
    assert parse_well("A0") is parse_well("AG1") is parse_well("dose") is None
    assert parse_well("A49") is parse_row("33") is None
    assert parse_row("C") == parse_row("3") == parse_row(3.0) == 2
    assert parse_row("2.5") is None
    assert well_name((26, 0)) == "AA01"
    held = {(0, 0): 6, (2, 3): 12, (0, 11): 96, (31, 47): 1536}
    assert {well: find_smallest_plate_format([well]) for well in held} == held
