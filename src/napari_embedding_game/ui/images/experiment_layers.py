"""Show the images of an experiment as layers with one slider for all images."""

from __future__ import annotations

from itertools import cycle

import napari
from qtpy.QtCore import QObject

from napari_embedding_game.data.images.experiment import ExperimentImages
from napari_embedding_game.ui.canvas.scene import MapScene
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import (
    FIELDS_KEY,
    FILE_KEY,
    OBJECTS_OPACITY,
    ObjectLayers,
    center_on_objects,
)

AXES = ("image", "z", "y", "x")
COLORMAPS = ("cyan", "magenta", "yellow", "green", "red", "blue")
"""Colormaps of several channels, which are rendered additively."""


def add_experiment_layers(
    viewer: napari.Viewer,
    images: ExperimentImages,
    name: str,
    present_layers: ObjectLayers | None = None,
) -> ObjectLayers:
    """Add the images and labels of an experiment as layers, and return the layers.

    There is a layer for each channel; several channels are rendered additively, each
    in a colour.  ``present_layers`` with the same labels are returned instead, if they
    are in the viewer.
    """
    is_there = present_layers is not None and present_layers.labels in viewer.layers
    if is_there and present_layers.labels.data is images.labels:
        return present_layers
    metadata = {FIELDS_KEY: images.names, FILE_KEY: str(images.folder)}
    how = {"axis_labels": AXES, "metadata": metadata}
    several = len(images.channels) > 1
    layers = []
    for (channel, stack), color in zip(
        images.channels.items(), cycle(COLORMAPS), strict=False
    ):
        looks = {
            "contrast_limits": images.limits[channel],
            "colormap": color if several else "gray",
        }
        layer = viewer.add_image(
            stack,
            name=f"{name} ({channel if several else 'images'})",
            rgb=images.is_rgb,
            blending="additive" if layers else "translucent_no_depth",
            **how,
            **({} if images.is_rgb else looks),
        )
        layers.append(layer)
    name = f"{name} (labels)"
    labels = viewer.add_labels(images.labels, name=name, opacity=OBJECTS_OPACITY, **how)
    return ObjectLayers(labels, tuple(layers))


class ImageSlider(QObject):
    """Moves the slider to the image of a single selected point, and names the image."""

    def __init__(self, scene: MapScene, dock: QObject) -> None:
        super().__init__(dock)
        self._viewer, self._session = (viewer := scene.viewer), scene.session
        self._linked = linked = scene.workspace.linked_layers
        self._axis = 0
        """The axis whose slider has an image's name, as a negative number; 0: none."""
        self._heard, always = Connections(self), Connections(self)
        always.connect(self._on_linked_layers_changed, linked.changed)
        events, removed = viewer.dims.events, viewer.layers.events.removed
        always.connect(
            self._update_slider_title, events.current_step, events.axis_labels, removed
        )
        self._on_linked_layers_changed()

    def _on_linked_layers_changed(self, event: object = None) -> None:
        """Subscribe to the selection while there are linked layers; name the image."""
        self._heard.close()
        if self._linked.current is not None:
            self._heard.connect(
                self._on_selection_changed, self._session.selection.changed
            )
            self._update_slider_title()

    def _on_selection_changed(self) -> None:
        """Move the sliders to the object of a single selected point; the camera stays.

        Nothing is done for clusters, several points, flat labels or a missing object.
        """
        linked, dataset = self._linked.current, self._session.dataset
        objects = None if dataset is None else dataset.objects
        selection, viewer = self._session.selection, self._viewer
        is_one = selection.is_of_points and len(selection.rows) == 1
        if linked is None or objects is None or not is_one:
            return
        chosen, axes = objects.take(selection.rows), linked.labels.ndim
        if linked.labels in viewer.layers and axes > 2 and chosen.present[0]:
            center_on_objects(viewer, linked.labels, chosen, moves_camera=False)

    def _update_slider_title(self, event: object = None) -> None:
        """Name the displayed image next to its slider, or restore napari's name.

        The uppermost layer of an experiment decides; without any the name is restored.
        """
        dims, titles = self._viewer.dims, list(self._viewer.dims.axis_labels)
        layers = [
            layer for layer in self._viewer.layers if FIELDS_KEY in layer.metadata
        ]
        if layers:
            self._axis, names = -layers[-1].ndim, layers[-1].metadata[FIELDS_KEY]
            index = round(layers[-1].world_to_data(dims.point)[0])
            titles[self._axis] = names[index] if 0 <= index < len(names) else AXES[0]
        elif self._axis and -self._axis <= dims.ndim:
            titles[self._axis], self._axis = str(self._axis), 0  # napari's default
        dims.axis_labels = tuple(titles)
