"""Checks of the binary tensor data extension, for servers whose metadata lists `binary_tensor_data`."""
import json
import math
import struct

import tensors
from suite import EXTENSION, NotApplicable, check

SECTION = "Binary Tensor Data Extension"


def binary_check(name, meaning):
    def add(function):
        def run(s):
            document = s.server.document if s.server.ok else None
            extensions = document.get("extensions") if isinstance(document, dict) else None
            if "binary_tensor_data" not in (extensions if isinstance(extensions, list) else []):
                raise NotApplicable("the server's metadata does not list binary_tensor_data")
            function(s)
        check(name, EXTENSION, SECTION, meaning)(run)
        return function
    return add


def to_binary(request, which=None):
    """The request with these inputs (their indices; all, if None) as binary data: the JSON object, and the bytes after it."""
    inputs, rest = [], b""
    for index, tensor in enumerate(request["inputs"]):
        tensor = dict(tensor)
        if which is None or index in which:
            data = tensors.to_bytes(tensor["datatype"], tensors.flattened(tensor.pop("data")))
            if data is None:
                raise NotApplicable(f"{tensor['datatype']} has no binary form here")
            tensor["parameters"] = {**tensor.get("parameters", {}), "binary_data_size": len(data)}
            rest += data
        inputs.append(tensor)
    return {**request, "inputs": inputs}, rest


def send(s, document, rest, length=None):
    """`length` is what Inference-Header-Content-Length says; without it, the truth."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    headers = {"Content-Type": "application/octet-stream",
               "Inference-Header-Content-Length": str(len(body) if length is None else length)}
    return s.infer(body + rest, headers=headers)


def sizes(exchange):
    """The binary_data_size of each output, None where there is none."""
    return {output.get("name"): (output.get("parameters") or {}).get("binary_data_size")
            for output in exchange.document["outputs"]}


# Right requests

@binary_check("binary-inputs", "inputs are accepted as binary data")
def binary_inputs(s):
    s.same(send(s, *to_binary(s.request())), "binary inputs")


@binary_check("binary-inputs-mixed", "some inputs are accepted as binary data, the others as JSON")
def binary_inputs_mixed(s):
    count = len(s.request()["inputs"])
    if count < 2:
        raise NotApplicable("the model has one input")
    for which in (range(0, count, 2), range(1, count, 2)):
        s.same(send(s, *to_binary(s.request(), which)), "inputs of both kinds")


@binary_check("binary-outputs-all", "with the parameter binary_data_output, all outputs are binary data")
def binary_outputs_all(s):
    answer = s.infer(s.request(parameters={"binary_data_output": True}))
    s.same(answer, "binary outputs")
    if answer.ok:
        s.expect(None not in sizes(answer).values(), answer, "each output has binary_data_size")
        s.expect("inference-header-content-length" in answer.headers, answer, "a header Inference-Header-Content-Length")


@binary_check("binary-output-one", "with the output's parameter binary_data, this output is binary data and the others are JSON")
def binary_output_one(s):
    names = list(tensors.read_outputs(s.infer(s.request())))
    for chosen in names:
        outputs = [{"name": name, **({"parameters": {"binary_data": True}} if name == chosen else {})} for name in names]
        answer = s.infer(s.request(outputs=outputs))
        s.same(answer, f"output '{chosen}' as binary data")
        if answer.ok:
            binary = [name for name, size in sizes(answer).items() if size is not None]
            s.expect(binary == [chosen], answer, f"binary data for '{chosen}' alone", f"for {binary}")


@binary_check("binary-output-override", "an output's parameter binary_data goes before the request's binary_data_output")
def binary_output_override(s):
    names = list(tensors.read_outputs(s.infer(s.request())))
    outputs = [{"name": name, "parameters": {"binary_data": False}} for name in names]
    answer = s.infer(s.request(parameters={"binary_data_output": True}, outputs=outputs))
    s.same(answer, "no output as binary data")
    if answer.ok:
        s.expect(all(size is None for size in sizes(answer).values()), answer, "no binary_data_size")


@binary_check("binary-both-ways", "binary inputs with JSON outputs, and with binary ones, have the same answer")
def binary_both_ways(s):
    for wanted in (False, True):
        document, rest = to_binary(s.request(parameters={"binary_data_output": wanted}))
        answer = send(s, document, rest)
        s.same(answer, f"binary inputs with binary_data_output {wanted}")
        if answer.ok:
            s.expect(all((size is not None) == wanted for size in sizes(answer).values()), answer,
                     "binary outputs" if wanted else "JSON outputs")


@binary_check("binary-bytes", "an element of BYTES is its length in 4 bytes, little-endian, and its bytes; also of length 0")
def binary_bytes(s):
    for texts in (("", "longer than one byte", "\u00fc"), ("x" * 300,)):
        request = s.request()
        for tensor in request["inputs"]:
            if tensor["datatype"] == "BYTES":
                count = math.prod(tensor["shape"])
                tensor["data"] = [texts[i % len(texts)] for i in range(count)]
        if request == s.request():
            raise NotApplicable("the model has no input of BYTES")
        by_json, by_bytes = s.infer(request, kind="probe"), send(s, *to_binary(request))
        if not by_json.ok:
            raise NotApplicable("the model refuses other strings")
        outputs = s.outputs(by_bytes, "BYTES as binary data")
        if outputs is not None and s.steady:
            s.expect(tensors.same_outputs(outputs, tensors.read_outputs(by_json)), by_bytes,
                     f"the same outputs as with JSON: {by_json.answer_line()}")


# Wrong requests

@binary_check("binary-size-wrong", "a binary_data_size that is not that of shape and datatype, or no size at all, is an error")
def binary_size_wrong(s):
    document, rest = to_binary(s.request())
    parameters = document["inputs"][-1]["parameters"]
    true_size = parameters["binary_data_size"]
    for size, data in ((true_size + 1, rest + b"\0"), (true_size - 1, rest[:-1]), (-1, rest), (2**63, rest), ("4", rest),
                       (1.5, rest)):
        parameters["binary_data_size"] = size
        s.refused(send(s, document, data), f"binary_data_size is {size}, but {true_size} are needed")
    s.alive("wrong sizes")


@binary_check("binary-rest-wrong", "a body with fewer or more bytes than the inputs' sizes is an error")
def binary_rest_wrong(s):
    document, rest = to_binary(s.request())
    s.refused(send(s, document, rest[:-1]), "a byte is missing at the end of the body")
    s.refused(send(s, document, b""), "the binary data is missing")
    s.refused(send(s, document, rest + b"\0"), "the body has a byte too many")


@binary_check("binary-header-wrong", "an Inference-Header-Content-Length that is no number, or not the length of the JSON, is an "
              "error")
def binary_header_wrong(s):
    document, rest = to_binary(s.request())
    body = json.dumps(document).encode()
    for length in ("x", "-1", len(body) - 1, len(body) + len(rest) + 1, 2**64 + len(body)):
        s.refused(send(s, body, rest, length), f"the header says {length}, but the JSON has {len(body)} bytes")


@binary_check("binary-body-cut", "a body that ends before Content-Length is not answered with 200, and the server lives on")
def binary_body_cut(s):
    document, rest = to_binary(s.request())
    body = json.dumps(document).encode()
    headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": len(body),
               "Content-Length": len(body) + len(rest)}
    data = s.client.head("POST", s.path + "/infer", headers) + body + rest[:-1]
    answer, = s.client.raw(data, [("POST", s.path + "/infer", body + rest[:-1], "alone")], end=True)
    s.expect(not answer.ok, answer, "an error, or no answer")
    s.alive("a body that was cut")


@binary_check("binary-bytes-broken", "BYTES data whose lengths are not those of its elements is an error")
def binary_bytes_broken(s):
    document, rest = to_binary(s.request())
    at, found = 0, False
    for tensor in document["inputs"]:
        size = tensor["parameters"]["binary_data_size"]
        if tensor["datatype"] == "BYTES" and size >= 4:
            found = True
            for length in (2**32 - 1, size, 0):
                broken = rest[:at] + struct.pack("<I", length) + rest[at + 4:]
                if broken != rest:
                    s.refused(send(s, document, broken), f"the first element of '{tensor['name']}' has the length {length}")
        at += size
    if not found:
        raise NotApplicable("the model has no input of BYTES")
    s.alive("wrong lengths")


@binary_check("binary-data-twice", "an input with both data and binary_data_size is an error")
def binary_data_twice(s):
    document, rest = to_binary(s.request())
    document["inputs"][0]["data"] = s.request()["inputs"][0]["data"]
    s.refused(send(s, document, rest), "an input has its data twice")


@binary_check("binary-non-finite", "numbers that are not finite are accepted as binary data, and returned as such")
def binary_non_finite(s):
    request = s.request(parameters={"binary_data_output": True})
    floats = [tensor for tensor in request["inputs"] if tensor["datatype"] in tensors.FLOATS]
    if not floats:
        raise NotApplicable("the model has no input of FP16, FP32 or FP64")
    for tensor in floats:
        count = math.prod(tensor["shape"])
        tensor["data"] = [(math.nan, math.inf, -math.inf)[i % 3] for i in range(count)]
    by_bytes = send(s, *to_binary(request))
    if not by_bytes.ok:
        raise NotApplicable("the model refuses them")
    s.outputs(by_bytes)
    by_json = send(s, *to_binary({**request, "parameters": {}}))
    if s.outputs(by_json, "the same with JSON outputs") is not None and s.steady:
        s.expect(tensors.same_outputs(tensors.read_outputs(by_bytes), tensors.read_outputs(by_json)), by_json,
                 f"the same numbers as in the binary answer {by_bytes.answer_line()}")
