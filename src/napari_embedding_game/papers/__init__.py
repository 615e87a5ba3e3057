"""What only a paper needs.

An optimizer of its own is a function from :class:`~..core.dynamics.state.Problem` and
settings to :class:`~..core.dynamics.state.Layouts`, as in :mod:`without_landmarks`.
"""
