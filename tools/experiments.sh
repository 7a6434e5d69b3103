#!/bin/sh
# All experiments on the simulated Alps. A run whose result is in FOLDER is not done again; states and weights go to WORK.
# Usage: tools/experiments.sh CRANPM FOLDER ARCHIVE [WORK]
set -eu
cranpm=$1 folder=$2 archive=$3 work=${4:-build/experiments}
"$cranpm" simulate --domain alps --days 2019-01-01..2026-12-31 "$archive"
"$cranpm" experiment table3c priors relief table3a table3b learning-curves counterfactuals \
    --archive "$archive" --out "$folder" --work "$work" --jobs 2
ahead="${archive%.archive}-ahead.archive" # four years with forecasts of the days ahead
"$cranpm" simulate --domain alps --days 2019-01-01..2022-12-31 "$ahead"
"$cranpm" experiment ahead --archive "$ahead" --out "$folder" --work "$work" --jobs 2
