r"""Recognise paths that lead to a server, without contacting the server.

Where a Windows path names a server, as in ``\\server\share``, a mere check whether the
file exists contacts that server and shows it who asks. A path in somebody else's file
must not cause that.
"""

from __future__ import annotations

from pathlib import PurePath, PureWindowsPath


def find_server(path: str | PurePath) -> str:
    r"""Return the server that a path names, in lower case; "" if it names none.

    The path is read as Windows reads it, on any system; a device (``\\.\``) counts as a
    server, too.
    """
    drive = PureWindowsPath(path).drive.lower()
    if not drive.startswith("\\\\"):
        return ""
    parts = drive.strip("\\").split("\\")
    is_long = parts[0] == "?" and parts[1:2] == ["unc"]
    return parts[2 if is_long and len(parts) > 2 else 0]
