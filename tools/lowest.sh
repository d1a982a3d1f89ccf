#!/usr/bin/env bash
# lowest.sh [VENV]: an environment with the lowest versions of what pyproject.toml declares; packages that only the
# tests need keep their pins. Needs .venv (make .venv/.ready).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=${1:-.venv-lowest}
uv=.venv/bin/uv
"${PYTHON:-$(.ci/python)}" -m venv --clear "$venv"
"$uv" pip compile -q --resolution lowest-direct --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
    pyproject.toml -o "$venv/lowest.txt"
# The pins of everything else: what the lowest versions do not name themselves.
awk -F'==' 'FNR == NR {low[$1] = 1; next} /^[^ #]/ {skip = ($1 in low)} !skip' \
    "$venv/lowest.txt" requirements/dev.txt >"$venv/rest.txt"
"$uv" pip install -q --python "$venv/bin/python" --no-deps -r "$venv/lowest.txt"
"$uv" pip install -q --python "$venv/bin/python" --no-deps --require-hashes -r "$venv/rest.txt"
"$uv" pip install -q --python "$venv/bin/python" --no-deps --no-build-isolation -e .
