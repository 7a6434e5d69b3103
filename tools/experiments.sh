#!/bin/sh
# All experiments on the simulated Alps. Goes on where it stopped. Usage: tools/experiments.sh CRANPM FOLDER ARCHIVE
set -eu
cranpm=$1 folder=$2 archive=$3
"$cranpm" simulate --domain alps --days 2019-01-01..2026-12-31 "$archive"
for name in table3c table3a table3b learning-curves counterfactuals; do
    "$cranpm" experiment $name --archive "$archive" --out "$folder"
done
