"""Files that lie about what they hold."""

import io
import pickle
import zipfile

import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file.zip_container import Container, write

NUMBERS = np.arange(12, dtype="<f4").reshape(4, 3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a session.zip"


def zipped(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npy(array, **options):
    content = io.BytesIO()
    np.lib.format.write_array(content, array, **options)
    return content.getvalue()


def header(text):
    text = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def test_there_and_back(path):
    write(path, {"session.json": b"{}", "arrays/0.npy": NUMBERS})
    file = Container(path)
    assert file.text("session.json") == b"{}"
    (found,) = file.arrays()
    np.testing.assert_array_equal(found, NUMBERS)
    found[:] = 0  # a copy of one's own


def test_an_existing_file_stays_when_writing_fails(path):
    write(path, {"session.json": b"{}"})
    with pytest.raises(ValueError, match="pickle"):
        write(path, {"arrays/0.npy": np.array([{}], dtype=object)})
    assert Container(path).text("session.json") == b"{}"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="could not be written"):
        write(tmp_path / "no" / "session.zip", {"session.json": b""})


def test_a_file_that_is_not_there(path):
    with pytest.raises(DataError, match="is not there"):
        Container(path)


@pytest.mark.parametrize(
    "name",
    ["../evil.py", "/etc/passwd", "arrays/../../0.npy", "C:\\x.json", "code.py", "a\n"],
)
def test_names_that_lead_elsewhere(path, name):
    zipped(path, {"session.json": b"{}", name: b"x"})
    with pytest.raises(DataError, match="is no session file"):
        Container(path)


def test_a_zip_bomb_is_not_unpacked(path):
    bomb = {"session.json": b"0" * 10_000_000}
    zipped(path, bomb, zipfile.ZIP_DEFLATED)
    with pytest.raises(DataError, match="may unpack to more"):
        Container(path)


def test_a_name_twice(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("session.json", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("session.json", b"2")
    with pytest.raises(DataError, match="a name twice"):
        Container(path)


def test_a_size_that_is_a_lie(path):
    zipped(path, {"session.json": b"x" * 100})
    content = path.read_bytes()
    place = content.rindex(b"PK\x01\x02") + 20
    huge = (2**31).to_bytes(4, "little")
    path.write_bytes(content[:place] + huge + huge + content[place + 8 :])
    with pytest.raises(DataError, match="is no session file"):
        Container(path)


@pytest.mark.parametrize("keep", [0, 1, 30, 200, -1, -30])
def test_cut_short(path, keep):
    write(path, {"session.json": b"{}", "arrays/0.npy": NUMBERS})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match="damaged"):
        Container(path)


def test_flipped_bits_are_noticed(path):
    write(path, {"arrays/0.npy": NUMBERS})
    content = bytearray(path.read_bytes())
    content[content.index(b"NUMPY") + 140] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        Container(path).arrays()


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("code was run",))


@pytest.mark.parametrize(
    "content",
    [
        npy(np.array([Evil()], object), allow_pickle=True),
        pickle.dumps(Evil()),
        b"",
        npy(NUMBERS)[:40],
        npy(NUMBERS)[:-1],
        npy(NUMBERS) + b"more",
        npy(np.asfortranarray(NUMBERS)),
        npy(np.array(["a"])),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000, 3), }"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3)}"),
        header("__import__('os').abort()"),
        header("{'descr': '<f4'"),
        b"\x93NUMPY\x01\x00\xff\xff",
    ],
)
def test_what_is_no_array_of_numbers(path, content):
    zipped(path, {"arrays/0.npy": content})
    with pytest.raises(DataError, match="no array of numbers"):
        Container(path).arrays()


def test_what_is_missing_is_named(path):
    write(path, {"session.json": b"{}", "arrays/1.npy": NUMBERS})
    with pytest.raises(DataError, match=r"maps/0\.json is missing"):
        Container(path).text("maps/0.json")
    with pytest.raises(DataError, match=r"arrays/0\.npy is missing"):
        Container(path).arrays()
