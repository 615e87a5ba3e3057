"""What the engine says to its user: an error and a warning."""


class InputError(ValueError):
    """Input or setting that cannot be used; the message says what and the way out.

    A window or a command line shows the message as it is, without a traceback.
    """


class EmbeddingWarning(UserWarning):
    """A map was made, but says little about the data; the message says why.

    The points have collapsed onto a few spots, have run far off, or were still moving.
    """
