#!/bin/sh
# Debian's chromium, in which the page is tested. Where it cannot be installed those tests are skipped, and say so.
if command -v chromium >/dev/null; then exit 0; fi
echo "installing chromium (once)"
if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1; then
    echo "chromium cannot be installed here: the tests of the page will be skipped"
fi
