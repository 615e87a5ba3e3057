#!/usr/bin/env bash
# Installs what Qt and OpenGL need from Debian or Ubuntu; instant when all is there.
# With the word "browser" also Chromium, in which the tests open a web page.
# Elsewhere, and on macOS and Windows, there is nothing for it to do.
# It never fails the build: what is lacking is said with the command that mends it.
set -euo pipefail

command -v dpkg-query >/dev/null || exit 0

packages=(
  xvfb xauth
  libegl1 libgl1 libgl1-mesa-dri libopengl0
  libdbus-1-3 libfontconfig1 libglib2.0-0 libxkbcommon-x11-0
  libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0
  libxcb-render-util0 libxcb-shape0 libxcb-xinerama0 libxcb-xkb1
)

# Debian keeps ensurepip, without which venv makes no environment, in a package apart.
if [ ! -x .venv/bin/python ] && ! "${PYTHON:-python3}" -c 'import ensurepip' 2>/dev/null; then
  packages+=(python3-venv)
fi

if [ "${1:-}" = browser ] && ! command -v chromium google-chrome >/dev/null; then
  packages+=(chromium)
fi

# One word a line, with what a package stands for: newer systems have libglib2.0-0t64.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' |
  sed -n 's/^installed //p' | tr ' ,' '\n\n')
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

install="apt-get install --yes --no-install-recommends ${missing[*]}"
if [ "$(id -u)" -eq 0 ]; then
  as_root=(env DEBIAN_FRONTEND=noninteractive)
elif sudo -n true 2>/dev/null; then
  as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
else
  printf 'These system libraries are missing, the window may not open. Install them with\n\n    sudo %s\n\n' "$install" >&2
  exit 0
fi

echo "Installing system libraries: ${missing[*]}"
"${as_root[@]}" apt-get update --quiet --quiet || true # a stale list often suffices
# shellcheck disable=SC2086  # the words of the command are meant to be split
"${as_root[@]}" $install --quiet ||
  printf 'That failed, the window may not open. Try\n\n    sudo %s\n\n' "$install" >&2
