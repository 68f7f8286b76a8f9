"""A small server of the Open Inference Protocol for the self-test. With a fault's name, it has this one fault."""
import http.server
import json
import math
import threading
import time

import tensors

INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}


def tensor(name, datatype, *shape):
    return {"name": name, "datatype": datatype, "shape": list(shape)}


# Each output `same_NAME` is the input, and `inverse_NAME` is 1 / input for the floating-point ones.
MODELS = {
    "sample": {"versions": ["1", "2"], "inputs": [tensor("x", "FP32", -1, 3), tensor("n", "INT32", -1, 2), tensor("u", "UINT8", -1),
                                                  tensor("s", "BYTES", -1), tensor("b", "BOOL", -1)]},
    "every": {"inputs": [tensor(name.lower(), name, -1) for name in tensors.DATATYPES]},
    "plain": {"inputs": [tensor("x", "FP64", 3)]},
    "scalar": {"inputs": [tensor("k", "INT64")]},
}


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def require(condition, message):
    if not condition:
        raise Refused(400, message)


def outputs_of(model):
    declared = [{**t, "name": "same_" + t["name"]} for t in MODELS[model]["inputs"]]
    return declared + [{**t, "name": "inverse_" + t["name"]} for t in MODELS[model]["inputs"] if t["datatype"] in tensors.FLOATS]


def inverse(value):
    return 1 / value if value else math.inf


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "reference"
    wbufsize = -1
    timeout = 20

    def log_message(self, *_):
        pass

    def has(self, fault):
        return self.server.fault == fault

    # HTTP

    def answer(self, status, document=None, rest=b"", headers=()):
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        if rest:
            self.send_header("Inference-Header-Content-Length", str(len(body)))
        kind = "application/octet-stream" if rest else "text/plain" if self.has("content type of text") else "application/json"
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(body) + len(rest))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body + rest)

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            require(not self.has("no chunks"), "chunks are not supported")
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length and not self.has("takes a body that was cut"):
            self.close_connection = True
            raise Refused(400, "the body is shorter than Content-Length says")
        return body + b"\0" * (length - len(body))

    def handle_expect_100(self):
        if self.has("no expectations"):
            self.answer(400, {"error": "no Expect, please"})
            self.close_connection = True
            return False
        return super().handle_expect_100()

    def do_GET(self):
        self.serve()

    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET

    def serve(self):
        try:
            body = self.read_body()
            self.route(self.path, body)
        except Refused as e:
            self.refuse(e.status, str(e))
        except (RecursionError, OverflowError, ValueError, IndexError) as e:
            self.refuse(400, str(e) or "wrong")

    def refuse(self, status, message):
        document = {"error": message}
        if self.has("another body for errors") and status == 400:
            document = {"detail": message}
        if self.has("a second form for errors") and status == 404:
            document["code"] = 404
        if self.has("5xx for faults of clients") and status == 400:
            status = 500
        if self.has("closes without a word") and status == 400:
            self.close_connection = True
        self.answer(status, document)

    def route(self, path, body):
        get, words = self.command == "GET", path.strip("/").split("/")
        fault = self.server.fault
        allowed = "POST" if words[-1] == "infer" else "GET"
        if self.command != allowed and not (fault == "any method" and words == ["v2", "health", "live"]):
            return self.answer(405, {"error": "no such method"}, headers=[("Allow", allowed)])
        if path == "/v2/health/live":
            return self.answer(503 if fault == "not live" else 200, {"alive": 1} if fault == "odd health body" else {"live": True})
        if path == "/v2/health/ready":
            return self.answer(503 if fault == "not ready" else 200, {"live": True, "ready": True})
        if path == "/v2" or path == "/v2/" and fault != "no /v2/":
            extensions = ["binary_tensor_data"] + ([7] if fault == "extension 7" else [])
            return self.answer(200, {"name": "reference", "version": "1", "extensions": extensions})
        if words[:2] == ["v2", "models"] and len(words) >= 3:
            return self.route_model(words[2], words[3:], body)
        if fault == "any path" and get:
            return self.answer(200, {})
        raise Refused(404, f"no such path: {path}")

    def route_model(self, name, words, body):
        fault = self.server.fault
        if name not in MODELS:
            require(fault != "any model" or words, "unknown")
            if fault == "any model" and words == ["ready"]:
                return self.answer(200, {"name": name, "ready": True})
            raise Refused(404, f"no model '{name}'")
        version = None
        if words[:1] == ["versions"] and len(words) >= 2:
            version, words = words[1], words[2:]
            if version not in MODELS[name].get("versions", []) and not (fault == "any version" and words == ["ready"]):
                raise Refused(404, f"no version '{version}'")
        if words == ["ready"]:
            unready = fault == "model not ready" and version is None or fault == "version not ready" and version == "2"
            return self.answer(503 if unready else 200, {"name": name, "ready": True})
        if not words:
            document = {"name": name, "platform": "reference", **MODELS[name], "outputs": outputs_of(name)}
            if fault == "no platform" and version is None or fault == "no platform of a version" and version:
                del document["platform"]
            return self.answer(200, document)
        if words == ["infer"]:
            return self.infer(name, version or MODELS[name].get("versions", [None])[-1], body)
        raise Refused(404, "no such path")

    # Inference

    def infer(self, model, version, body):
        fault = self.server.fault
        if fault == "hangs up for null" and body == b"null":
            self.close_connection = True
            return
        if fault == "needs a content type":
            require(self.headers.get("Content-Type", "").startswith("application/"), "no Content-Type")
        length = self.headers.get("Inference-Header-Content-Length")
        if length is None or fault == "ignores the header" and not length.isdecimal():
            try:
                length = len(body) if length is None else body.index(b"}]}") + 3
            except ValueError:
                length = len(body)
        require(fault == "ignores the header" or str(length).isdecimal() and int(length) <= len(body), "wrong header")
        text, rest = body[:int(length)], body[int(length):]
        if not text and fault == "takes an empty body":
            return self.answer(200, {"model_name": model, "outputs": []})
        try:
            request = json.loads(text.decode())
        except (ValueError, RecursionError):
            if fault == "takes no JSON" and text == b"no JSON" or fault == "takes deep nesting" and text[:9] == b"[[[[[[[[[":
                request = {"inputs": []}
                return self.answer(200, {"model_name": model, "outputs": []})
            raise
        if not isinstance(request, dict) and fault == "takes no object":
            return self.answer(200, {"model_name": model, "outputs": []})
        require(isinstance(request, dict), "the body is no object")
        if fault == "takes no inputs" and "inputs" not in request:
            return self.answer(200, {"model_name": model, "outputs": []})
        if fault == "inputs that are an object" and isinstance(request.get("inputs"), dict):
            return self.answer(200, {"model_name": model, "outputs": []})
        require(isinstance(request.get("inputs"), list), "no array `inputs`")
        if fault == "5xx for unknown members" and "no_such_member" in request:
            raise Refused(500, "unknown member")
        values = self.server.read_inputs(model, request["inputs"], rest)
        if fault == "5xx for no rows" and [] in [flat for _, flat in values.values()]:
            raise Refused(500, "no rows")
        if fault == "slow and mixed" and self.server.mixed(request.get("id")):
            time.sleep(0.01)
        results = self.server.results(model, values)
        self.send_outputs(model, version, request, results)

    def send_outputs(self, model, version, request, results):
        fault, asked = self.server.fault, request.get("outputs")
        settings = {output["name"]: output.get("parameters", {}) for output in asked or []}
        for name in settings:
            require(name in results or fault == "unknown outputs ignored", f"no output '{name}'")
        if fault == "one output" and not asked:
            results = dict([*results.items()][:1])
        all_binary = request.get("parameters", {}).get("binary_data_output", False)
        outputs, rest = [], b""
        for name, (datatype, shape, flat) in results.items():
            if asked and name not in settings and fault != "outputs ignored":
                continue
            setting = settings.get(name, {})
            binary = setting.get("binary_data", all_binary) or fault == "no override" and all_binary
            if fault == "no binary output alone" and not all_binary or fault == "no binary outputs" and len(settings) == 0 \
                    and not self.headers.get("Inference-Header-Content-Length"):
                binary = False
            if fault == "no binary both ways" and self.headers.get("Inference-Header-Content-Length"):
                binary = False
            output = {"name": name, "datatype": datatype, "shape": shape}
            if binary:
                if fault == "binary NaN is 0":
                    flat = [0.0 if v != v else v for v in flat]
                data = tensors.to_bytes(datatype, flat)
                output["parameters"] = {"binary_data_size": len(data)}
                rest += data
            else:
                output["data"] = [self.json_element(v) for v in flat]
            outputs.append(output)
        document = {"model_name": model, "outputs": outputs}
        if fault == "another model name":
            document["model_name"] = "other"
        if version:
            document["model_version"] = "2" if fault == "another version" else version
        if "id" in request:
            document["id"] = self.server.id_of(request["id"])
        elif fault == "made-up id":
            document["id"] = "made-up"
        self.server.spoil(outputs)
        self.answer(200, document, rest)
        if fault == "drops the second of two" and request.get("id") == "first-of-two":
            self.close_connection = True

    def json_element(self, value):
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, float) and not math.isfinite(value):
            if self.has("null for NaN"):
                return None
            return value if self.has("bare words for NaN") else INFINITE.get(value, "NaN")
        return value


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, fault=""):
        super().__init__(("127.0.0.1", 0), Handler)
        self.fault = fault
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.lock, self.ids = threading.Lock(), []
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()

    # Reading inputs: each message is of one rule, and a fault leaves out one rule.

    def read_inputs(self, model, inputs, rest):
        fault = self.fault
        declared = {t["name"]: t for t in MODELS[model]["inputs"]}
        if fault == "order matters":
            names = [t.get("name") for t in inputs if isinstance(t, dict)]
            require(set(names) != set(declared) or len(names) != len(declared) or names == list(declared), "wrong order")
        if fault == "no mixed inputs":
            require(len({"data" in t for t in inputs if isinstance(t, dict)}) < 2, "all inputs or none as binary data")
        values = {}
        for t in inputs:
            if fault == "skips inputs that are no objects" and not isinstance(t, dict):
                return {name: (d, []) for name, d in declared.items()}
            require(isinstance(t, dict), "an input is no object")
            name = t.get("name")
            require(isinstance(name, str), "an input has no name")
            if name not in declared and fault == "extra inputs ignored":
                continue
            require(name in declared, f"no input '{name}'")
            require(name not in values or fault == "inputs twice", f"input '{name}' twice")
            flat, rest = self.read_input(declared[name], t, rest)
            values[name] = ({**t, "shape": self.shape(t, declared[name])}, flat)
        require(not rest or fault == "more bytes ignored", "the body has more bytes than the inputs")
        for name in declared:
            if name not in values and fault == "missing inputs made up":
                values[name] = (tensors.make_tensor(declared[name], 1, "ones"), [])
            require(name in values, f"input '{name}' is missing")
        return values

    def shape(self, t, declared):
        good = isinstance(t["shape"], list) and all(tensors.is_integer(size) and 0 <= size < 2**64 for size in t["shape"])
        return t["shape"] if good else [1 if size == -1 else size for size in declared["shape"]]

    def read_input(self, declared, t, rest):
        fault, shape, datatype, wanted = self.fault, t.get("shape"), t.get("datatype"), declared["shape"]
        if fault == "any datatype" and datatype in tensors.DATATYPES:
            datatype = declared["datatype"]
        if fault == "unknown datatypes" and isinstance(datatype, str) and datatype not in tensors.DATATYPES:
            datatype = declared["datatype"]
        require(datatype == declared["datatype"], "wrong datatype")
        require(isinstance(shape, list), "the shape is no array")
        if fault == "sizes that are no integers" and not all(map(tensors.is_integer, shape)):
            return [], rest
        require(all(map(tensors.is_integer, shape)), "a size is no integer")
        if fault == "negative sizes" and min(shape, default=0) < 0:
            return [], rest
        require(all(size >= 0 for size in shape), "a size is negative")
        if fault == "sizes modulo 2^64":
            shape = [size % 2**64 for size in shape]
        require(all(size < 2**64 for size in shape), "a size is too large")
        require(len(shape) == len(wanted) or fault == "any rank" and len(shape) == len(wanted) + 1, "wrong rank")
        require(all(w in (-1, size) for w, size in zip(wanted, shape)) or fault == "any size" and max(shape) < 100,
                "wrong size")
        count = math.prod(shape)
        size = t.get("parameters", {}).get("binary_data_size")
        if size is not None:
            return self.read_binary(t, datatype, count, size, rest)
        require("data" in t, "no data")
        return self.read_json(datatype, shape, count, t["data"]), rest

    def read_binary(self, t, datatype, count, size, rest):
        fault = self.fault
        require(fault != "no binary inputs", "no binary inputs, please")
        require("data" not in t or fault == "data twice", "both data and binary_data_size")
        if fault == "any binary size" and size == -1:
            return [tensors.one_value(datatype, 0)] * count, b""
        require(tensors.is_integer(size) and 0 <= size, "binary_data_size is no size")
        require(size <= len(rest) or fault == "fewer bytes" and size == len(rest) + 1, "the body ends before the inputs")
        data = rest[:size] + b"\0" * (size - len(rest))
        try:
            flat = tensors.from_bytes(datatype, data)
        except ValueError:
            if fault != "broken lengths":
                raise
            flat = [b""] * count
        require(len(flat) == count or fault == "broken lengths" and datatype == "BYTES", "wrong size of binary data")
        if fault == "lengths without the last bit" and datatype == "BYTES":
            flat = [text[:255] for text in flat]
        return flat, rest[size:]

    def read_json(self, datatype, shape, count, data):
        fault = self.fault
        if fault == "data that is no array" and not isinstance(data, list):
            data = [tensors.one_value(datatype, 1)] * count
        require(isinstance(data, list), "data is no array")
        flat = tensors.flattened(data)
        require(abs(len(flat) - count) <= 1, f"{len(flat)} elements instead of {count}")
        if data and isinstance(data[0], list):
            require(fault != "no nested data" or len(shape) < 2, "no nested data, please")
            if fault == "columns first" and len(shape) == 2:
                flat = [row[i] for i in range(shape[1]) for row in data]
            else:
                require(fault == "ragged data" or data == tensors.nested(flat, shape), "the nesting is not that of the shape")
        elif fault == "no flat data":
            require(len(shape) < 2, "no flat data, please")
        if fault == "elements made up" and len(flat) == count - 1:
            flat = flat + [tensors.one_value(datatype, 0)]
        if fault == "elements dropped" and len(flat) == count + 1:
            flat = flat[:-1]
        require(len(flat) == count, f"{len(flat)} elements instead of {count}")
        return [self.read_element(datatype, value) for value in flat]

    def read_element(self, datatype, value):
        fault = self.fault
        if fault == "words are 0" and value == "abc":
            value = tensors.one_value(datatype, 0)
        if fault == "fractions are cut" and datatype in tensors.INTEGERS and isinstance(value, float):
            value = int(value)
        if fault == "integers wrap" and datatype in tensors.INTEGERS and tensors.is_integer(value):
            low, high = tensors.integer_range(datatype)
            value = (value - low) % (high - low + 1) + low
        require(not (fault == "no integers for floats" and datatype in tensors.FLOATS and isinstance(value, int)), "an integer")
        require(value is not None and tensors.fits(datatype, value), "an element is not of the datatype")
        if datatype in tensors.FLOATS:
            require(not isinstance(value, str) or value in tensors.NON_FINITE, "not a number")
            return float(tensors.NON_FINITE.get(value, value) if isinstance(value, str) else value)
        return value

    # Results

    def results(self, model, values):
        results = {}
        for declared in outputs_of(model):
            kind, name = declared["name"].split("_", 1)
            t, flat = values[name]
            results[declared["name"]] = (declared["datatype"], t["shape"],
                                         [inverse(v) for v in flat] if kind == "inverse" else flat)
            if self.fault == "elements left out" and name == "u":
                results[declared["name"]] = (declared["datatype"], t["shape"], flat[:1])
            if self.fault == "datatype changed" and name == "n":
                results[declared["name"]] = ("INT64", t["shape"], flat)
            if kind == "inverse" and declared["datatype"] != "FP64":   # as the datatype has them
                results[declared["name"]] = (declared["datatype"], t["shape"], [
                    v if not math.isfinite(v) or abs(v) <= tensors.LARGEST[declared["datatype"]] else math.copysign(math.inf, v)
                    for v in results[declared["name"]][2]])
        return results

    def mixed(self, id):
        with self.lock:
            if id and str(id).startswith("request-"):
                self.ids.append(id)
                return True
        return False

    def id_of(self, id):
        if self.fault == "ids in ASCII":
            return id if id.isascii() else "?"
        if self.fault == "ids of three letters":
            return id if len(id) <= 3 or "-" in id else id[:3]
        if self.fault == "slow and mixed" and str(id).startswith("request-"):
            with self.lock:
                return self.ids[-1]
        return id

    def spoil(self, outputs):
        """The faults of outputs."""
        for output in outputs:
            shape = output["shape"]
            if self.fault == "rank changed" and len(shape) == 1:
                output["shape"] = shape + [1]
