#!/usr/bin/env bash
# tritonclient 2.73.0: a request with binary tensors changes the caller's dictionary of headers, and with it later requests.
#
# One would guess that `headers=` of InferenceServerClient.infer() is read. But it is written into: the size of the request's JSON
# (Inference-Header-Content-Length), and Content-Encoding or Accept-Encoding if a compression was asked for. Who keeps one
# dictionary for a token, the usual way, sends these with all that follows. A request without binary tensors then claims that its
# first bytes alone are JSON, or that it is compressed, and a server that believes it refuses the request. A client should pass
# a copy: headers=dict(headers).
#
# Seen on 2026-11-28, against a server that notes what it gets.
source "$(dirname "$0")/common.sh"
python venv 'tritonclient[http]==2.73.0' numpy==2.4.6

cat >"$tmp/ask.py" <<'P'
import http.server, json, threading

import numpy as np
import tritonclient.http as triton

seen = []


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        self.rfile.read(size)
        said = self.headers.get("Inference-Header-Content-Length")
        seen.append("none" if said is None else "less than the body" if int(said) < size else "the body")
        body = json.dumps({"model_name": "m", "outputs": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = triton.InferenceServerClient(f"127.0.0.1:{server.server_address[1]}")
headers = {"Authorization": "Bearer token"}
values = np.arange(64, dtype=np.float32)
for binary in (False, True, False):
    tensor = triton.InferInput("x", [64], "FP32")
    tensor.set_data_from_numpy(values, binary_data=binary)
    client.infer("m", [tensor], outputs=[triton.InferRequestedOutput("y", binary_data=False)], headers=headers)
print("headers of the caller:", ", ".join(sorted(headers)))
print("JSON's size in a request of JSON, in one with binary tensors, in one of JSON:", ", ".join(seen))
P
"$tmp/venv/bin/python" "$tmp/ask.py" >"$tmp/out"
expect "the caller's dictionary" "headers of the caller: Authorization, Inference-Header-Content-Length" "$(sed -n 1p "$tmp/out")"
expect "what was sent" \
  "JSON's size in a request of JSON, in one with binary tensors, in one of JSON: none, less than the body, less than the body" \
  "$(sed -n 2p "$tmp/out")"
