"""The digits network behind other servers: `peers.py ray|litserve|mlserver PORT`. A network of numpy with the same layers; its
weights are random, as they do not matter here."""
import json
import os
import pathlib
import sys
import tempfile

import numpy as np

LAYERS = json.loads(os.environ.get("LAYERS", "[64, 128, 10]"))


class Network:
    def __init__(self):
        random = np.random.default_rng(1)
        self.layers = [(random.standard_normal((a, b), dtype=np.float32), np.zeros(b, np.float32))
                       for a, b in zip(LAYERS, LAYERS[1:])]

    def __call__(self, x):
        for weights, bias in self.layers[:-1]:
            x = np.maximum(x @ weights + bias, 0)
        weights, bias = self.layers[-1]
        x = x @ weights + bias
        x = np.exp(x - x.max(axis=1, keepdims=True))
        return x / x.sum(axis=1, keepdims=True)


def answer(request, network):
    tensor = request["inputs"][0]
    p = network(np.array(tensor["data"], dtype=np.float32).reshape(tensor["shape"]))
    return {"model_name": "digits", "outputs": [
        {"name": "digit", "shape": [len(p)], "datatype": "INT64", "data": p.argmax(axis=1).tolist()},
        {"name": "probability", "shape": list(p.shape), "datatype": "FP32", "data": p.ravel().tolist()}]}


def ray(port):
    from ray import serve

    @serve.deployment(max_ongoing_requests=100)
    class Digits:
        def __init__(self):
            self.network = Network()

        async def __call__(self, request):
            return answer(await request.json(), self.network)

    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(Digits.bind(), blocking=True)


try:
    import litserve as ls

    class LitDigits(ls.LitAPI):  # its workers are other processes, which look for it here
        def setup(self, device):
            self.network = Network()

        def decode_request(self, request):
            return request

        def predict(self, request):
            return answer(request, self.network)

        def encode_response(self, output):
            return output
except ImportError:
    ls = None


def litserve(port):
    ls.LitServer(LitDigits(api_path="/v2/models/digits/infer"), accelerator="cpu").run(
        port=port, host="127.0.0.1", generate_client_file=False, log_level="error")


MODEL = """
import sys
sys.path.insert(0, {here!r})
import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse
from peers import Network


class Digits(MLModel):
    async def load(self):
        self.network = Network()
        return True

    async def predict(self, payload):
        p = self.network(NumpyCodec.decode_input(payload.inputs[0]))
        return InferenceResponse(model_name=self.name, outputs=[
            NumpyCodec.encode_output("digit", p.argmax(axis=1)), NumpyCodec.encode_output("probability", p)])
"""


def mlserver(port):
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "model.py").write_text(MODEL.format(here=str(pathlib.Path(__file__).resolve().parent)))
    (folder / "model-settings.json").write_text(json.dumps({"name": "digits", "implementation": "model.Digits"}))
    (folder / "settings.json").write_text(json.dumps({
        "host": "127.0.0.1", "http_port": port, "grpc_port": port + 1, "metrics_port": port + 2, "parallel_workers": 0,
        "debug": False}))
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    from mlserver.cli import main
    sys.argv = ["mlserver", "start", str(folder)]
    main()


if __name__ == "__main__":
    {"ray": ray, "litserve": litserve, "mlserver": mlserver}[sys.argv[1]](int(sys.argv[2]))
