"""Values that hold arrays are the same where they are the same object."""

import dataclasses
import importlib
import pkgutil

from napari_embedding_game import core


def dataclasses_of_core():
    for module in pkgutil.walk_packages(core.__path__, f"{core.__name__}."):
        for found in vars(importlib.import_module(module.name)).values():
            if isinstance(found, type) and dataclasses.is_dataclass(found):
                yield found


def test_no_arrays_are_compared_by_a_dataclass():
    for found in set(dataclasses_of_core()):
        types = " ".join(str(field.type) for field in dataclasses.fields(found))
        if "NDArray" in types or "Tensor" in types:
            assert found.__eq__ is object.__eq__, found
