#!/usr/bin/env bash
# nevergrad 1.0.12: the ends of a range of whole numbers are drawn half as often as the numbers between them.
#
# Scalar(lower=0, upper=3).set_integer_casting() has the values 0, 1, 2 and 3. One would guess that a uniform sample gives
# each of them a quarter. It draws a real number in [0, 3] and rounds it, so that 0 and 3 get a sixth each, 1 and 2 a
# third. For two values nothing is seen; for three (layers: 1, 2, 3) the middle one gets half of a random search. Bounds
# that are wider by a half are refused nowhere and give the uniform distribution.
#
# Seen on 2026-11-27: 3,000 samples, as below.
source "$(dirname "$0")/common.sh"
python venv nevergrad==1.0.12

cat >"$tmp/sample.py" <<'P'
import collections
import nevergrad as ng

def shares(lower, upper):
    domain = ng.p.Scalar(lower=lower, upper=upper).set_integer_casting()
    domain.random_state.seed(1)
    counts = collections.Counter(domain.sample().value for _ in range(3000))
    return " ".join(f"{value}:{counts[value] / 3000:.2f}" for value in sorted(counts))

print(shares(1, 3))
print(shares(0.5001, 3.4999))
P
seen=$("$tmp/venv/bin/python" "$tmp/sample.py" 2>/dev/null)
expect version 1.0.12 "$("$tmp/venv/bin/pip" show nevergrad 2>/dev/null | sed -n 's/^Version: //p')"
expect "from 1 to 3" "1:0.25 2:0.50 3:0.25" "$(head -n 1 <<<"$seen")"
expect "from 0.5001 to 3.4999" "1:0.34 2:0.33 3:0.33" "$(tail -n 1 <<<"$seen")"
