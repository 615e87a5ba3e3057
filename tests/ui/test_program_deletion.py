"""Layers that are removed do not end the process at the next drawing."""

import os
import subprocess
import sys
from pathlib import Path

from vispy.gloo import glir

from napari_embedding_game.ui.program_deletion import keep_deleted_programs

SCRIPT = Path(__file__).with_name("removed_layers.py")


def test_no_program_is_deleted(monkeypatch):
    asked = []
    monkeypatch.setattr(glir.gl, "glDeleteProgram", asked.append)
    keep_deleted_programs()
    keep_deleted_programs()
    program = glir.GlirProgram.__new__(glir.GlirProgram)
    program._handle = 7
    program.delete()
    assert asked == []


def test_without_what_it_needs_of_vispy_all_stays_as_it_was(monkeypatch, caplog):
    monkeypatch.delattr(glir, "GlirProgram")
    keep_deleted_programs()
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
