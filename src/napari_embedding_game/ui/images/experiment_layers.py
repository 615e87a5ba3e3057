"""The images of an experiment as layers: one slider goes through all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from napari.layers import Image, Labels

from napari_embedding_game.data.images.experiment import ExperimentImages
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.compat import camera_of
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import (
    FILE,
    OBJECTS_OPACITY,
    Linked,
    LinkedLayers,
    go_to,
)

if TYPE_CHECKING:
    import napari

FIELDS = "napari-embedding-game fields"
"""Metadata of a Labels layer: the names of the images along its first axis."""
AXES = ("image", "z", "y", "x")
COLORMAPS = ("cyan", "magenta", "yellow", "green", "red", "blue")
"""Of several channels, which are added up."""


def show_experiment(
    viewer: napari.Viewer,
    images: ExperimentImages,
    name: str,
    present: Linked | None = None,
) -> Linked:
    """Show images and labels as layers, or bring those that are there up to date."""
    if present is not None and present.labels in viewer.layers:
        labels = present.labels
        if labels.data is not images.labels:
            labels.data = images.labels
            for layer, stack in zip(
                present.images, images.channels.values(), strict=False
            ):
                layer.data = stack
        labels.metadata[FIELDS] = images.names
        return present
    layers = tuple(_image_layers(viewer, images, name))
    labels = viewer.add_labels(
        images.labels,
        name=f"{name} (labels)",
        opacity=OBJECTS_OPACITY,
        metadata={FIELDS: images.names, FILE: str(images.folder)},
        axis_labels=AXES,
    )
    return Linked(labels, layers)


def _image_layers(
    viewer: napari.Viewer, images: ExperimentImages, name: str
) -> list[Image]:
    several = len(images.channels) > 1
    layers = []
    for place, (channel, stack) in enumerate(images.channels.items()):
        more = {}
        if not images.is_rgb:
            colormap = COLORMAPS[place % len(COLORMAPS)] if several else "gray"
            more = {"contrast_limits": images.limits[channel], "colormap": colormap}
        layers.append(
            viewer.add_image(
                stack,
                name=f"{name} ({channel if several else 'images'})",
                rgb=images.is_rgb,
                blending="additive" if place else "translucent_no_depth",
                axis_labels=AXES,
                **more,
            )
        )
    return layers


class ShownField:
    """Shows the image of the one point that is selected, and names it at the slider.

    The camera moves only where the object would not be seen.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    linked : LinkedLayers
    """

    def __init__(
        self, viewer: napari.Viewer, session: Session, linked: LinkedLayers
    ) -> None:
        self._viewer = viewer
        self._session = session
        self._linked = linked
        self._connections = Connections()
        for signal, slot in (
            (session.selection.changed, self._on_selection),
            (linked.changed, self._on_step),
            (viewer.dims.events.current_step, self._on_step),
            (viewer.dims.events.axis_labels, self._on_step),
        ):
            self._connections.connect(signal, slot)

    def close(self) -> None:
        """Undo the connections to session and viewer."""
        self._connections.close()

    # Inside

    def _on_selection(self) -> None:
        linked, dataset = self._linked.current, self._session.dataset
        selection = self._session.selection
        if linked is None or dataset is None or dataset.objects is None:
            return
        rows = selection.rows
        is_one = selection.is_of_points and len(rows) == 1
        if not is_one or linked.labels.ndim < 3 or not dataset.objects.present[rows[0]]:
            return
        if linked.labels not in self._viewer.layers:
            return
        objects = dataset.objects.take(rows)
        is_seen = _is_seen(self._viewer, linked.labels, objects)
        go_to(self._viewer, linked.labels, objects, moves_camera=not is_seen)

    def _on_step(self, event: object = None) -> None:
        """Name the image on show beside the slider."""
        linked = self._linked.current
        names = None if linked is None else linked.labels.metadata.get(FIELDS)
        if linked is None or names is None or linked.labels not in self._viewer.layers:
            return
        dims = self._viewer.dims
        axis = dims.ndim - linked.labels.ndim
        place = dims.current_step[axis]
        if 0 <= place < len(names):
            shown = list(dims.axis_labels)
            shown[axis] = names[place]
            dims.axis_labels = tuple(shown)


def _is_seen(viewer: napari.Viewer, labels: Labels, objects: Objects) -> bool:
    """Return whether the middle of an object would be on the canvas now."""
    if viewer.canvas.grid.enabled or viewer.dims.ndisplay == 3:
        return False
    camera = camera_of(viewer)
    middle = np.asarray(labels.data_to_world(objects.centers[0]))[-2:]
    pixels = (middle - np.asarray(camera.center)[-2:]) * camera.zoom
    return bool((np.abs(pixels) <= np.array(viewer.canvas.size) / 2).all())
