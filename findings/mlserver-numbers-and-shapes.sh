#!/usr/bin/env bash
# MLServer 1.7.1: an infinite number is answered as null, a tensor [2] as [2, 1], and outputs are sent that nobody asked for.
#
# A model whose predict() encodes a NumPy array with NumpyCodec, the documented way, is asked by the Open Inference Protocol.
# One would guess that the answer has the array's shape, that a number which JSON has no form for is an error or is spelt,
# and that `outputs` in a request selects, as the protocol has it. But a rank of 1 becomes 2, so
# that a client which compares shapes with the metadata fails; 1/0 is null, in a tensor of FP64, as NaN is, so that a client
# cannot tell them apart; and each output of the model is in each answer. A client should take null as a number that is not
# finite, shapes with a trailing 1, and further outputs.
#
# Seen on 2026-11-28, over REST on this machine's loopback.
source "$(dirname "$0")/common.sh"
python venv mlserver==1.7.1 numpy==2.4.6

mkdir "$tmp/model"
cat >"$tmp/model/model.py" <<'P'
import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class Inverse(MLModel):
    async def predict(self, payload):
        x = NumpyCodec.decode_input(payload.inputs[0])
        with np.errstate(all="ignore"):
            outputs = {"inverse": 1 / x, "product": x * (1 / x)}
        return InferenceResponse(
            model_name=self.name, outputs=[NumpyCodec.encode_output(name, y) for name, y in outputs.items()])
P
echo '{"name": "inverse", "implementation": "model.Inverse"}' >"$tmp/model/model-settings.json"
read -r http grpc metrics < <(python3 - <<'P'
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(s.getsockname()[1] for s in sockets))
P
)
echo "{\"host\": \"127.0.0.1\", \"http_port\": $http, \"grpc_port\": $grpc, \"metrics_port\": $metrics, \"parallel_workers\": 0}" \
  >"$tmp/model/settings.json"
(cd "$tmp/model" && exec "$tmp/venv/bin/mlserver" start . >"$tmp/log" 2>&1) &
server=$!
trap 'kill $server; wait $server || true; rm -rf "$tmp"' EXIT

cat >"$tmp/ask.py" <<'P'
import json, sys, time, urllib.request

url = f"http://127.0.0.1:{sys.argv[1]}/v2/models/inverse"
for _ in range(600):
    try:
        urllib.request.urlopen(url + "/ready").close()
        break
    except OSError:
        time.sleep(0.1)
request = {
    "inputs": [{"name": "x", "datatype": "FP64", "shape": [2], "data": [4.0, 0.0]}],
    "outputs": [{"name": "inverse"}],
}
headers = {"content-type": "application/json"}
with urllib.request.urlopen(urllib.request.Request(url + "/infer", json.dumps(request).encode(), headers)) as answer:
    for output in json.load(answer)["outputs"]:
        print(output["name"], output["datatype"], output["shape"], output["data"])
P
seen=$(python3 "$tmp/ask.py" "$http")
expect version 1.7.1 "$("$tmp/venv/bin/pip" show mlserver 2>/dev/null | sed -n 's/^Version: //p')"
expect "the output that was asked for" "inverse FP64 [2, 1] [0.25, None]" "$(head -n 1 <<<"$seen")"
expect "one that was not" "product FP64 [2, 1] [1.0, None]" "$(tail -n +2 <<<"$seen")"
