"""What only a paper needs.

An optimizer of its own is a function from :class:`~..core.dynamics.state.Problem` and
settings to :class:`~..core.dynamics.state.Layouts`, listed in :mod:`offered`;
:mod:`full_batch` is an example.
"""
