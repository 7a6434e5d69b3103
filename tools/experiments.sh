#!/bin/sh
# All experiments on the simulated Alps. What FOLDER holds is not done again. Usage: tools/experiments.sh CRANPM FOLDER ARCHIVE
set -eu
cranpm=$1 folder=$2 archive=$3
"$cranpm" simulate --domain alps --days 2019-01-01..2026-12-31 "$archive"
"$cranpm" experiment table3c priors relief table3a table3b learning-curves counterfactuals \
    --archive "$archive" --out "$folder" --jobs 2
