#!/usr/bin/env bash
# Installs this checkout into an environment of its own: tools/install.sh PREFIX. The Containerfile runs nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
prefix=${1:?say where: tools/install.sh PREFIX}
python=${PYTHON:-python3}

"$python" -m venv "$prefix"
"$prefix/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
"$prefix/bin/uv" pip install -q --python "$prefix/bin/python" --require-hashes -r requirements/run.txt
"$prefix/bin/python" -m hatchling build -t wheel -d "$prefix/wheel"
"$prefix/bin/uv" pip install -q --python "$prefix/bin/python" --no-deps "$prefix"/wheel/*.whl
mkdir -p "$prefix/data"
"$prefix/bin/toolgrove" --version
