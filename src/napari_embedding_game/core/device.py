"""Which device moves the points: the processor, or a graphics card.

A card runs ``torch_forces.TorchForces`` and ``optimizer.Player``; :func:`play.play`
raises :data:`GPU_IS_FULL` where the card's memory does not suffice.
"""

from __future__ import annotations

import torch

from napari_embedding_game.core.errors import InputError

_DEVICES = ("cpu", "cuda", "mps")
GPU_POINTS = 20_000
"""Fewest points for which "auto" takes a GPU: for 20,000 points an H200 took 1.0 s
where 16 cores took 1.9 (d9fd858c, ``neighbours_scaling.py --fits``); smaller maps were
not measured."""
GPU_IS_FULL = "The graphics card has too little memory: choose the device cpu."


def resolve_device(device: str, n_points: int = GPU_POINTS) -> torch.device:
    """Return the torch device for a name such as "cpu", "cuda:1" or "auto".

    "auto" is CUDA for maps of at least :data:`GPU_POINTS` points, where this machine
    has a CUDA device, else the CPU.  ``n_points`` counts for "auto" alone.  Raises
    InputError for an unknown name, or a device that this machine does not have.
    """
    if device == "auto":
        on_gpu = n_points >= GPU_POINTS and torch.cuda.is_available()
        return torch.device("cuda" if on_gpu else "cpu")
    if device.partition(":")[0] not in _DEVICES:
        raise InputError(
            f"There is no device {device!r}: choose auto, {', '.join(_DEVICES)}."
        )
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"This machine has no device {device} that torch can use: "
            "choose the device auto or cpu."
        ) from error
