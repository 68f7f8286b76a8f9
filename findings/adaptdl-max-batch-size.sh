#!/usr/bin/env bash
# adaptdl 0.2.11: the batch that is chosen for several replicas may be larger than max_batch_size, and the one for a single
# replica without accumulation is not chosen at all.
#
# GoodputFunction.optimize(nodes, replicas, max_batch_size=128) returns the batch of a replica. One would guess that replicas
# times this batch is 128 at most: a limit is given where the model's quality or a formula for the learning rate holds no
# further. But the best total batch is divided by the replicas and rounded up, and the limit is not looked at again: 129 for
# three replicas, 133 for seven. For one replica the answer is the initial batch, whatever the model of throughput says,
# unless accumulation is allowed, since the statistics of gradients need two batches in a step. Who gives a limit that must
# hold gives it less the replicas minus one.
#
# Seen on 2026-11-28 with numpy 1.23.5 (with 1.24 and newer, optimize() without accumulation ends with an AttributeError,
# because it uses numpy.int).
source "$(dirname "$0")/common.sh"
python venv numpy==1.23.5 scipy==1.10.1 autograd==1.6.2
"$tmp/venv/bin/pip" -q --disable-pip-version-check install --no-deps adaptdl==0.2.11  # the rest of it needs PyTorch

cat >"$tmp/batches.py" <<'P'
from adaptdl.goodput import GoodputFunction, GradParams, PerfParams

# Times in seconds: the longer the batch, the better for the throughput; gradients so noisy that large batches pay.
goodput = GoodputFunction(PerfParams(0.01, 0.0001, 0.02, 0.001, 0.01, 0.0005, 1.5), GradParams(1e-6, 1.0), 32)
for replicas in 2, 3, 7:
    _, batch, accumulated = goodput.optimize(1, replicas, max_batch_size=128, atomic_bsz_range=(8, 64), accumulation=True)
    print(f"{replicas}:{replicas * batch * (accumulated + 1)}", end=" ")
print()
for accumulation in False, True:
    _, batch, accumulated = goodput.optimize(1, 1, max_batch_size=128, atomic_bsz_range=(8, 128), accumulation=accumulation)
    print(batch * (accumulated + 1), end=" ")
print()
P
seen=$("$tmp/venv/bin/python" -W ignore "$tmp/batches.py")
expect version 0.2.11 "$("$tmp/venv/bin/pip" show adaptdl 2>/dev/null | sed -n 's/^Version: //p')"
expect "replicas and their batch, of 128" "2:128 3:129 7:133 " "$(head -n 1 <<<"$seen")"
expect "one replica, without and with accumulation" "32 128 " "$(tail -n 1 <<<"$seen")"
