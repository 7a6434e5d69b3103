#!/bin/sh
# Tables 1 and 2 on the simulated Alps: every learned method trained by alps.toml, verified on the test year.
# A stopped run resumes. Usage: tools/table1.sh CRANPM FOLDER ARCHIVE
set -eu
cranpm=$1 folder=$2 archive=$3
days=2026-01-02..2026-12-28 every=4
mkdir -p "$folder"
"$cranpm" simulate --domain alps --days 2019-01-01..2026-12-31 "$archive"

learned="cran-pm boosting simvp simvp-on-1km convlstm topoflow climax earthformer"
for name in $learned; do
    run=$folder/runs/$name
    case $name in
        cran-pm) options="" ;;
        simvp-on-1km) options="--model simvp --set baseline.start=fine" ;;
        topoflow) options="--model $name --set baseline.patch=2" ;; # the same as for CRAN-PM's coarse tokens
        *) options="--model $name" ;;
    esac
    if [ ! -f "$run/test.json" ]; then
        resume=""
        if [ -d "$run/state" ] || [ -d "$run/weights" ]; then resume="--resume"; fi
        # shellcheck disable=SC2086
        "$cranpm" train alps.toml --archive "$archive" --out "$run" $options $resume
    fi
    made=$folder/forecasts/$name/.made-by
    if ! cmp -s "$run/best/SHA256SUMS" "$made"; then
        "$cranpm" forecast --archive "$archive" --weights "$run/best" --day $days --every $every --format nc \
            --out "$folder/forecasts/$name"
        cp "$run/best/SHA256SUMS" "$made"
    fi
done

given=""
for name in $learned; do given="$given --forecasts $name=$folder/forecasts/$name"; done
# shellcheck disable=SC2086
"$cranpm" verify --archive "$archive" --days $days --every $every --baselines persistence,damped,climatology,cams \
    --fit-days 2019-01-01..2024-12-31 --paper --jobs 2 --out "$folder/verified" $given
