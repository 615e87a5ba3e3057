"""The one error of the engine that is meant to be read by its user."""


class InputError(ValueError):
    """Input or setting that cannot be used; the message says what and the way out.

    A window or a command line shows the message as it is, without a traceback.
    """
