#!/usr/bin/env bash
# ecosystem.sh: one environment for each client and server of tests/ecosystem, in .cache/ecosystem; those that are
# current stay as they are. Needs .venv (make .venv/.ready).
# `ecosystem.sh pins` writes the pins anew, from the names in tests/ecosystem/pins/*.in.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

uv=.venv/bin/uv
into=.cache/ecosystem
if [[ ${1:-} == pins ]]; then
    for names in tests/ecosystem/pins/*.in; do
        "$uv" pip compile -q --upgrade --python-version 3.11 --generate-hashes --no-annotate --no-header \
            --no-emit-index-url --no-emit-find-links "$names" -o "${names%.in}.txt"
    done
    exit
fi

.ci/node-tools.sh
for pins in tests/ecosystem/pins/*.txt; do
    name=$(basename "$pins" .txt)
    wanted=$(sha256sum <"$pins")
    if [[ -f $into/$name/.pins && $(<"$into/$name/.pins") == "$wanted" ]]; then
        continue
    fi
    rm -rf "${into:?}/$name"
    "$uv" venv -q --python "${PYTHON:-$(.ci/python)}" "$into/$name"
    "$uv" pip install -q --python "$into/$name/bin/python" --require-hashes -r "$pins"
    echo "$wanted" >"$into/$name/.pins"
done

wanted=$(sha256sum <tests/ecosystem/node/package-lock.json)
if [[ ! -f $into/node/.pins || $(<"$into/node/.pins") != "$wanted" ]]; then
    rm -rf "${into:?}/node"
    mkdir -p "$into/node"
    cp tests/ecosystem/node/package.json tests/ecosystem/node/package-lock.json "$into/node/"
    (cd "$into/node" && PATH="$OLDPWD/.cache/node/bin:$PATH" npm install --no-audit --no-fund --ignore-scripts --loglevel=error)
    echo "$wanted" >"$into/node/.pins"
fi
