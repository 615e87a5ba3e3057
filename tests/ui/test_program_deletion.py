"""Layers that are removed do not end the process at the next drawing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from vispy.gloo import glir

from napari_embedding_game.ui.program_deletion import put_deleted_programs_out_of_use

SCRIPT = Path(__file__).with_name("removed_layers.py")


class Parser:
    def __init__(self, current):
        self.env = {"current_program": current}


@pytest.fixture
def calls(monkeypatch):
    """What is asked of OpenGL, in its order."""
    asked = []
    for name in ("glUseProgram", "glDeleteProgram"):
        monkeypatch.setattr(
            glir.gl, name, lambda number, name=name: asked.append((name, number))
        )
    return asked


def program(number, current):
    made = glir.GlirProgram.__new__(glir.GlirProgram)
    made._handle, made._parser = number, Parser(current)
    return made


def test_a_program_in_use_is_put_out_of_use_before_it_is_deleted(calls):
    put_deleted_programs_out_of_use()
    put_deleted_programs_out_of_use()
    one = program(7, current=7)
    one.delete()
    assert calls == [("glUseProgram", 0), ("glDeleteProgram", 7)]
    assert one._parser.env["current_program"] == 0


def test_another_program_stays_in_use(calls):
    put_deleted_programs_out_of_use()
    program(7, current=8).delete()
    assert calls == [("glDeleteProgram", 7)]


def test_without_what_it_needs_of_vispy_all_stays_as_it_was(monkeypatch, caplog):
    monkeypatch.delattr(glir, "GlirProgram")
    put_deleted_programs_out_of_use()
    assert "vispy has changed" in caplog.text


def test_layers_come_and_go_beside_the_docks(tmp_path):
    # a process of its own: its death must not end the tests
    done = subprocess.run(
        [sys.executable, SCRIPT],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert "alive" in done.stdout, done.stderr[-3000:]
