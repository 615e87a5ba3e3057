"""Methods, minimisers, starts and affinities that only the papers need.

A method with its own optimiser is a function of a
:class:`~..core.dynamics.state.Problem` and settings that returns
:class:`~..core.dynamics.state.Layouts`, as in :mod:`without_landmarks`.
"""
