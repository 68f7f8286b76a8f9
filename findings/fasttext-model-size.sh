#!/usr/bin/env bash
# What a tuned parameter of fastText does to the size of its model.
#
# One would guess: a model grows with its text, and `-wordNgrams 2` in place of 1 adds the pairs of words that occur.
# What happens: from 2 on, the model has a table of `-bucket` rows (2,000,000 by default) for pairs, however few there are. A text of
# 80 lines gives 2 kB at 1, and 80 MB at 2 with `-dim 10`; with the default of 100 dimensions it is 800 MB. So of the trials of a
# sweep over 1 to 4, some write a few kB, and the others 800 MB each.
# Seen 2026-11-28: fasttext 0.9.2 (Debian 12). For a tuner that keeps the folders of its trials: thirty of them are 24 GB.
source "$(dirname "$0")/common.sh"
debian fasttext=0.9.2+ds-1+b1
for i in $(seq 40); do
  echo "__label__a the ship sails at dawn $i"
  echo "__label__b a cat sleeps in the sun $i"
done >"$tmp/text"
# kilobytes WORDS: of a model with pairs (2) or without (1).
kilobytes() {
  "$tmp/root/usr/bin/fasttext" supervised -input "$tmp/text" -output "$tmp/model" -dim 10 -epoch 1 -thread 1 -wordNgrams "$1" >/dev/null 2>&1
  echo $(($(stat -c %s "$tmp/model.bin") / 1000))
}
expect "kB of the model with -wordNgrams 1" "2" "$(kilobytes 1)"
expect "kB of the model with -wordNgrams 2" "80002" "$(kilobytes 2)"
