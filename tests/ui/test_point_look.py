"""What is set in the layer of the map stands in the session, and comes back."""

import numpy as np
from napari.layers import Points

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.point_look import PointLook


def test_a_layer_and_the_session_have_one_look():
    look = Session().look
    follower = PointLook(look)
    first, second = (Points(np.zeros((4, 2)), opacity=0.9) for _ in range(2))
    follower.follow_layer(first)
    first.opacity, first.blending, first.symbol = 0.25, "additive", "star"
    assert (look.point_opacity, look.point_blending) == (0.25, "additive")
    assert look.point_symbol == "star"
    follower.follow_layer(second)  # of the next map
    assert (second.opacity, str(second.blending)) == (0.25, "additive")
    assert {one.value for one in second.symbol} == {"star"}
    first.opacity = 1.0  # a former layer is a person's own
    assert look.point_opacity == 0.25
    look.point_opacity = 0.5  # as a session restores it
    assert second.opacity == 0.5
    second.symbol = ["disc", "ring", "disc", "disc"]
    assert look.point_symbol == "star"
    for field in ("point_blending", "point_symbol"):
        setattr(look, field, "no such thing")  # of a file
    assert str(second.blending) == "additive"
    follower.close()
    second.opacity = 0.7
    assert look.point_opacity == 0.5
