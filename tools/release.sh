#!/usr/bin/env bash
# Builds what is published, checks it, and lists what it stands on: tools/release.sh [FOLDER] (dist). See docs/releasing.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-dist}
bin=${BIN:-.venv/bin}

rm -rf "$out"
"$bin/python" -m build --no-isolation --outdir "$out" .
"$bin/twine" check --strict "$out"/*.whl "$out"/*.tar.gz
"$bin/cyclonedx-py" requirements requirements/run.txt --pyproject pyproject.toml --output-reproducible \
    --output-file "$out/toolgrove.cdx.json"
(cd "$out" && sha256sum -- * >SHA256SUMS)
