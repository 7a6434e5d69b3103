#!/bin/sh
# Weights trained on Europe only, on simulated North America and India: unchanged, and fine-tuned on three months there.
# A stopped run resumes. Usage: tools/transfer.sh CRANPM FOLDER [WEIGHTS]
set -eu
cranpm=$1 folder=$2 weights=${3:-shipped}
tuned_on=2021-10-01..2021-12-20 chosen_on=2021-12-24..2022-01-02
verified_on=2022-01-06..2022-12-28 every=32 # a whole year is simulated, but only the days that are needed are stored
mkdir -p "$folder"

forecast() { # NAME WEIGHTS OPTIONS
    made=$folder/$region/$1
    if [ ! -f "$made/.done" ]; then
        "$cranpm" forecast --archive "$archive" --weights "$2" --day $verified_on --every $every --leads 1 --format nc \
            --out "$made" ${3:-}
        touch "$made/.done"
    fi
}

for region in india usa_canada; do
    archive=$folder/$region.archive
    "$cranpm" simulate --domain $region --days 2021-09-30..2022-01-03 "$archive"
    "$cranpm" simulate --domain $region --days $verified_on --every $every "$archive"
    forecast zero-shot "$weights" --degrade
    run=$folder/$region/run
    if [ ! -f "$run/test.json" ]; then
        resume=""
        if [ -d "$run/state" ]; then resume="--resume"; fi
        # shellcheck disable=SC2086
        "$cranpm" finetune "$weights" small-europe.toml --archive "$archive" --out "$run" $resume \
            --set splits.train=$tuned_on --set splits.validation=$chosen_on --set splits.test=$verified_on \
            --set optimiser.learning_rate=3e-4 --set optimiser.epochs=4 --set scores.days=8
    fi
    forecast tuned "$run/best"
    "$cranpm" verify --archive "$archive" --days $verified_on --every $every --leads 1 --baselines persistence,damped \
        --fit-days $tuned_on --means --no-ssim --out "$folder/$region/verified" \
        --forecasts zero-shot="$folder/$region/zero-shot" --forecasts tuned="$folder/$region/tuned"
done
