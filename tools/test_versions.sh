#!/usr/bin/env bash
# Tests the rooms of data and sessions with other versions than constraints.txt has:
#
#   tools/test_versions.sh lowest    the lowest that pyproject.toml allows
#   tools/test_versions.sh newest    the newest there are, on the newest Python here
#
# Each has an environment of its own, made once for each pyproject.toml.  torch is
# not resolved: on Linux PyPI has it only with gigabytes for GPUs.  The tests that need
# it are skipped and counted, unless somebody has put it into the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:?lowest or newest}
venv=.venv-$kind
bin=$venv/bin
[ "${OS:-}" = Windows_NT ] && bin=$venv/Scripts

# A name on the PATH may be a shim of pyenv that leads nowhere, so each is tried.
newest_python() {
  local minor candidate
  for minor in 14 13 12; do
    for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
      if "$candidate" -c 'import ensurepip' 2>/dev/null; then
        echo "$candidate"
        return
      fi
    done
  done
  echo 'No Python 3.12 or newer is here: the newest for this one are tested.' >&2
  echo "${PYTHON:-python3}"
}

if ! cmp -s pyproject.toml "$venv/pyproject.toml"; then
  python=${PYTHON:-python3}
  [ "$kind" = newest ] && python=$(newest_python)
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$bin/python" -m pip install --quiet uv
  echo "torch ; sys_platform == 'none'" >"$venv/without_torch.txt"
  resolution=highest
  [ "$kind" = lowest ] && resolution=lowest-direct
  "$bin/uv" pip compile --quiet --no-header --no-annotate \
    --python "$bin/python" --resolution "$resolution" \
    --override "$venv/without_torch.txt" --extra all --extra test \
    --output-file "$venv/versions.txt" pyproject.toml
  "$bin/uv" pip install --quiet --python "$bin/python" --requirement "$venv/versions.txt"
  "$bin/uv" pip install --quiet --python "$bin/python" --no-deps --editable .
  cp pyproject.toml "$venv/pyproject.toml"
fi

"$bin/python" --version
grep -E '^(anndata|napari|numba|numpy|pandas|scipy|zarr)==' "$venv/versions.txt" | xargs echo

# numba keeps one cache for each Python, whatever its own version.
export NUMBA_CACHE_DIR=$PWD/$venv/numba
options=(--numprocesses 2 --dist loadfile -p no:cacheprovider)
"$bin/python" -c 'import torch' 2>/dev/null || options+=(--without-torch)
# Old versions beside new ones may warn, if they only work.
[ "$kind" = lowest ] && options+=(-W default)
"$bin/python" -m pytest "${options[@]}" tests/data tests/session
