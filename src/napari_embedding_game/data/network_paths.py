r"""Tell a path that leads to a server from one of this computer, touching neither.

Where a path of Windows names a server, as in ``\\server\share``, already asking
whether the file exists contacts that server, and shows it who asks.  A path that a file
of somebody else's holds must not do that.
"""

from __future__ import annotations

from pathlib import PurePath, PureWindowsPath


def find_server(path: str | PurePath) -> str:
    r"""Return the server that a path names, in lower case; "" for none.

    It is read as Windows reads it on any system, as a device (``\\.\``) is, too.
    """
    drive = PureWindowsPath(path).drive.lower()
    if not drive.startswith("\\\\"):
        return ""
    parts = drive.strip("\\").split("\\")
    is_long = parts[0] == "?" and parts[1:2] == ["unc"]
    return parts[2 if is_long and len(parts) > 2 else 0]
