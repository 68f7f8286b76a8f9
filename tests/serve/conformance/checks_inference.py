"""Checks of inference with JSON."""
import json
import math

import tensors
from suite import MUST, SHOULD, NotApplicable, check, flat_request, nested_request

REQUEST = "Inference Request JSON Object"
INPUT = "Request Input"
DATA = "Tensor Data"
RESPONSE = "Inference Response JSON Object"
OUTPUT = "Response Output"
CLIENTS = "clients depend on it"


# Right requests

@check("infer", MUST, RESPONSE, "a valid request is answered with 200, model_name and outputs")
def infer(s):
    if not s.base:
        if not s.first_refusal:
            raise NotApplicable("the metadata declares no inputs: give a valid request with --input FILE")
        s.fail(s.first_refusal, "status 200 for one of several requests that the metadata describes. If the model needs other "
               "data, give a valid request with --input FILE")
        return
    s.outputs(s.first)
    document = s.first.document if isinstance(s.first.document, dict) else {}
    s.expect(document.get("model_name") == s.model, s.first, f'`model_name` is "{s.model}"', f"{document.get('model_name')!r}")


@check("infer-version", MUST, RESPONSE, "/versions/V/infer is answered by this version")
def infer_version(s):
    for version in s.versions():
        answer = s.infer(s.request(), version=version)
        if s.outputs(answer, f"version {version} answers") is not None:
            got = answer.document.get("model_version")
            s.expect(got == version, answer, f'`model_version` is "{version}"', f"{got!r}")


@check("outputs-all", MUST, REQUEST, "without `outputs`, all outputs of the metadata are returned")
def outputs_all(s):
    outputs = s.outputs(s.infer({k: v for k, v in s.request().items() if k != "outputs"}))
    if outputs is not None:
        for name in s.declared("outputs"):
            s.expect(name in outputs, s.first, f"an output '{name}'")


@check("outputs-selected", MUST, REQUEST, "with `outputs`, only these outputs are returned")
def outputs_selected(s):
    names = list(s.declared("outputs") or tensors.read_outputs(s.infer(s.request())))
    if len(names) < 2:
        raise NotApplicable("the model has one output")
    for name in names:
        answer = s.infer(s.request(outputs=[{"name": name}]))
        outputs = s.outputs(answer, f"only output '{name}'")
        if outputs is not None:
            s.expect(list(outputs) == [name], answer, f"only output '{name}'", f"outputs {list(outputs)}")


@check("output-unknown", MUST, "Request Output", "a request for an output that the model does not have is an error")
def output_unknown(s):
    s.refused(s.infer(s.request(outputs=[{"name": "no-such-output"}])), "the model has no such output")


def each_output(s):
    """Name, datatype, shape, values and declaration of each output of the first answer."""
    s.request()
    declared = s.declared("outputs")
    for name, (datatype, shape, data) in tensors.read_outputs(s.first).items():
        yield name, datatype, shape, data, declared.get(name)


@check("output-elements", MUST, OUTPUT, "an output has as many elements as its shape says")
def output_elements(s):
    for name, _, shape, data, _ in each_output(s):
        s.expect(len(data) == math.prod(shape), s.first, f"{math.prod(shape)} elements of '{name}', whose shape is {shape}",
                 f"{len(data)} elements")


@check("output-shapes", MUST, "Model Metadata Response JSON Object: shape", "an output has the rank and the fixed sizes that the "
       "metadata declares")
def output_shapes(s):
    known = False
    for name, _, shape, _, declared in each_output(s):
        if declared:
            known, wanted = True, declared["shape"]
            s.expect(len(shape) == len(wanted) and all(w in (-1, size) for w, size in zip(wanted, shape)), s.first,
                     f"a shape of '{name}' as the metadata has it: {wanted}", f"{shape}")
    if not known:
        raise NotApplicable("the metadata declares none of the outputs")


@check("output-datatypes", MUST, "Tensor Data Types", "an output has the datatype that the metadata declares, and elements of it")
def output_datatypes(s):
    for name, datatype, _, data, declared in each_output(s):
        wanted = declared["datatype"] if declared else datatype
        s.expect(datatype == wanted, s.first, f"datatype {wanted} of '{name}'", datatype)
        wrong = [value for value in data if not tensors.fits(datatype, value)]
        s.expect(not wrong, s.first, f"each element of '{name}' is a {datatype}", f"{wrong[:3]}")


def check_ids(s, ids):
    for id in ids:
        answer = s.infer({"id": id, **s.request()})
        if s.accepted(answer, "a request with an id"):
            s.expect(answer.document.get("id") == id, answer, f"`id` is {id!r}", f"{answer.document.get('id')!r}")


@check("id-echoed", MUST, REQUEST, "the id of a request is returned")
def id_echoed(s):
    check_ids(s, ("42", 'a "quoted" id', "x" * 100))


@check("id-unicode", MUST, REQUEST, "an id is any string: also one with letters outside of ASCII")
def id_unicode(s):
    check_ids(s, ("\u00fc", "\u4e16\u754c"))


@check("id-absent", SHOULD, RESPONSE, "an answer has no id if the request had none")
def id_absent(s):
    answer = s.infer({k: v for k, v in s.request().items() if k != "id"})
    if s.accepted(answer, "a request without an id"):
        s.expect("id" not in answer.document, answer, "no `id`", f"{answer.document.get('id')!r}")


@check("data-flat", MUST, DATA, "data is accepted as a flat array")
def data_flat(s):
    s.same(s.infer(flat_request(s.request())), "flat data")


@check("data-nested", MUST, DATA, "data is accepted in its multi-dimensional form")
def data_nested(s):
    if all(len(tensor["shape"]) < 2 for tensor in s.request()["inputs"]):
        raise NotApplicable("no input has two dimensions")
    s.same(s.infer(nested_request(s.request())), "nested data")


@check("data-integers-for-floats", MUST, DATA, "integers are accepted as elements of FP16, FP32 and FP64")
def data_integers_for_floats(s):
    def change(tensor):
        flat = tensors.flattened(tensor["data"])
        if tensor["datatype"] not in tensors.FLOATS or not all(isinstance(v, (int, float)) and v == int(v) for v in flat):
            return False
        whole = [int(v) for v in flat]
        tensor["data"] = tensors.nested(whole, tensor["shape"]) if flat != tensor["data"] else whole
    for name, request in s.variants(change):
        s.same(s.infer(request), f"integers for '{name}'")


@check("input-order", MUST, INPUT, "inputs are known by their names: their order does not matter")
def input_order(s):
    request = s.request()
    if len(request["inputs"]) < 2:
        raise NotApplicable("the model has one input")
    request["inputs"].reverse()
    s.same(s.infer(request), "the inputs in the opposite order")


@check("members-unknown", SHOULD, CLIENTS, "unknown members and parameters are ignored or refused, without a 5xx")
def members_unknown(s):
    for request in (s.request(no_such_member={"a": [1]}), s.request(parameters={"no_such": 1, "word": "x", "flag": True}),
                    s.changed(lambda tensor: tensor.update(no_such_member=None))):
        answer = s.infer(request, kind="probe")
        s.expect(answer.ok or 400 <= answer.status <= 499, answer, "status 200, or a 4xx")


@check("batch-empty", SHOULD, CLIENTS, "a size of 0 is answered consistently or refused, without a 5xx")
def batch_empty(s):
    request, declared = s.request(), s.declared("inputs")
    for tensor in request["inputs"]:
        if declared.get(tensor["name"], {}).get("shape", [])[:1] != [-1]:
            raise NotApplicable("not every input has a variable first size")
        tensor["shape"][0], tensor["data"] = 0, []
    answer = s.infer(request, kind="probe")
    if answer.ok:
        for name, (_, shape, data) in (s.outputs(answer) or {}).items():
            s.expect(len(data) == math.prod(shape), answer, f"{math.prod(shape)} elements of '{name}'", f"{len(data)} elements")
    else:
        s.expect(400 <= answer.status <= 499, answer, "status 200, or a 4xx")


@check("non-finite", MUST, DATA, "an element that is not finite is not null: null is no element, and NaN and infinity differ")
def non_finite(s):
    found, attempts = False, [s.request()]
    for values in (0.0, 1.0, None, "NaN", "Infinity", "-Infinity"):
        request = s.request()
        for tensor in request["inputs"]:
            if tensor["datatype"] in tensors.FLOATS:
                value = tensors.LARGEST[tensor["datatype"]] if values is None else values
                tensor["data"] = [value] * math.prod(tensor["shape"])
        attempts.append(request)
    for request in attempts:
        answer = s.infer(request, kind="probe")   # a model may refuse words
        if not answer.ok:
            continue
        for name, (_, _, data) in tensors.read_outputs(answer).items():
            if None in data:
                s.fail(answer, f"no null in output '{name}'")
                return
            found = found or any(isinstance(v, float) and not math.isfinite(v) or isinstance(v, str)
                                 and v in tensors.NON_FINITE for v in data)
    if not found:
        raise NotApplicable("no answer held a number that is not finite")


# Wrong tensors

def refuse_variants(s, change, why):
    for name, request in s.variants(change):
        s.refused(s.infer(request), f"input '{name}' {why}")


@check("input-missing", MUST, "Model Metadata Response JSON Object: inputs", "a request without one of the inputs is an error")
def input_missing(s):
    for index in range(len(s.request()["inputs"])):
        request = s.request()
        if request["inputs"].pop(index)["name"] in s.declared("inputs"):
            s.refused(s.infer(request), "an input is missing")


@check("input-extra", SHOULD, CLIENTS, "an input that the model does not have is an error")
def input_extra(s):
    request = s.request()
    request["inputs"].append({**request["inputs"][0], "name": "no-such-input"})
    s.refused(s.infer(request), "the model has no such input")


@check("input-duplicate", SHOULD, CLIENTS, "an input that is given twice is an error")
def input_duplicate(s):
    request = s.request()
    request["inputs"].append(dict(request["inputs"][0]))
    s.refused(s.infer(request), "an input is given twice")


@check("input-members", MUST, INPUT, "an input without name, shape, datatype or data, or that is no object, is an error")
def input_members(s):
    for member in ("name", "shape", "datatype", "data"):
        s.refused(s.infer(s.changed(lambda tensor: tensor.pop(member))), f"an input has no `{member}`")
    for value in ("x", 1, None, []):
        s.refused(s.infer(s.request(inputs=[value])), "an input is no object")


@check("datatype-wrong", SHOULD, CLIENTS, "another datatype than that of the metadata is an error")
def datatype_wrong(s):
    def change(tensor):
        other = "INT32" if tensor["datatype"] != "INT32" else "FP64"
        tensor.update(datatype=other, data=[tensors.one_value(other, 1)] * math.prod(tensor["shape"]))
    refuse_variants(s, change, "has another datatype")


@check("datatype-unknown", MUST, "Tensor Data Types", "a datatype that the protocol does not have is an error")
def datatype_unknown(s):
    for datatype in ("FLOAT99", "", 7):
        refuse_variants(s, lambda tensor: tensor.update(datatype=datatype), "has an unknown datatype")


@check("rank-wrong", SHOULD, CLIENTS, "another number of dimensions than that of the metadata is an error")
def rank_wrong(s):
    def change(tensor):
        tensor["shape"] = tensor["shape"] + [1]
        tensor["data"] = tensors.flattened(tensor["data"])
    refuse_variants(s, change, "has a dimension too many")


@check("dimension-wrong", SHOULD, CLIENTS, "another size than a fixed one of the metadata is an error")
def dimension_wrong(s):
    def change(tensor):
        fixed = [i for i, size in enumerate(s.declared("inputs").get(tensor["name"], {}).get("shape", [])) if size > 0]
        if not fixed:
            return False
        tensor["shape"][fixed[-1]] += 1
        tensor["data"] = [tensors.one_value(tensor["datatype"], 1)] * math.prod(tensor["shape"])
    refuse_variants(s, change, "has another size")


@check("dimension-negative", MUST, INPUT, "a negative size is an error")
def dimension_negative(s):
    def change(tensor):
        if not tensor["shape"]:
            return False
        tensor["shape"][0] = -tensor["shape"][0]
    refuse_variants(s, change, "has a negative size")
    refuse_variants(s, lambda tensor: bool(tensor["shape"]) and tensor.update(shape=[-1] * len(tensor["shape"])),
                    "has sizes of -1")


@check("dimension-no-integer", MUST, INPUT, "a size that is no integer, or a shape that is no array, is an error")
def dimension_no_integer(s):
    for size in (1.5, "two", None, [2]):
        refuse_variants(s, lambda tensor: bool(tensor["shape"]) and tensor.update(shape=[size] + tensor["shape"][1:]),
                        "has a size that is no integer")
    for shape in ("2", {}, None):
        refuse_variants(s, lambda tensor: tensor.update(shape=shape), "has a shape that is no array")


@check("elements-too-few", MUST, INPUT, "fewer elements than the shape says are an error")
def elements_too_few(s):
    def change(tensor):
        flat = tensors.flattened(tensor["data"])
        if not flat:
            return False
        tensor["data"] = flat[:-1]
    refuse_variants(s, change, "has an element too few")


@check("elements-too-many", MUST, INPUT, "more elements than the shape says are an error")
def elements_too_many(s):
    def change(tensor):
        tensor["data"] = tensors.flattened(tensor["data"])
        tensor["data"].append(tensors.one_value(tensor["datatype"], 1))
    refuse_variants(s, change, "has an element too many")


@check("shape-overflow", MUST, INPUT, "a shape whose product is more than 64 bits can hold is an error, also if it is the number "
       "of elements modulo 2^64")
def shape_overflow(s):
    def large(tensor):   # the product modulo 2^64 is that of the data
        if not tensor["shape"]:
            return False
        tensor["shape"][-1] += 2**64
    refuse_variants(s, large, "has a size of more than 64 bits")
    for sizes in ([2**32, 2**32], [2**63, 2], [2**61, 8], [2**64 - 1, 2**64 - 1]):
        for fill in (True, False):
            def product(tensor):
                rank = len(tensor["shape"])
                shape = sizes + [1] * (rank - 2) if rank > 1 else sizes[:1] if rank else sizes
                tensor.update(shape=shape, data=tensor["data"] if fill else [])
            refuse_variants(s, product, "has a shape of too many elements")
    s.alive("shapes that are too large")


# Wrong elements

def with_first(tensor, value):
    tensor["data"] = [value] + tensors.flattened(tensor["data"])[1:]


@check("data-words", MUST, DATA, "a word as an element of a number's datatype or of BOOL is an error: it cannot be coerced")
def data_words(s):
    refuse_variants(s, lambda tensor: tensor["datatype"] != "BYTES" and with_first(tensor, "abc"), "has the word \"abc\"")


@check("data-no-elements", MUST, DATA, "null and objects are no elements, and data is an array")
def data_no_elements(s):
    for value in (None, {"a": 1}):
        refuse_variants(s, lambda tensor: with_first(tensor, value), f"has the element {value}")
    for data in (1, "abc", {}, None):
        refuse_variants(s, lambda tensor: tensor.update(data=data), "has data that is no array")


@check("data-fractions", SHOULD, DATA, "a fraction as an element of an integer's datatype is an error")
def data_fractions(s):
    refuse_variants(s, lambda tensor: tensor["datatype"] in tensors.INTEGERS and with_first(tensor, 1.5), "has the element 1.5")


@check("data-out-of-range", SHOULD, DATA, "an integer that the datatype cannot hold is an error")
def data_out_of_range(s):
    for end in (0, 1):
        def change(tensor):
            if tensor["datatype"] not in tensors.INTEGERS:
                return False
            with_first(tensor, tensors.integer_range(tensor["datatype"])[end] + (1 if end else -1))
        refuse_variants(s, change, "has an element that is out of range")


@check("data-ragged", SHOULD, DATA, "nested data whose form is not that of the shape is an error")
def data_ragged(s):
    def change(tensor):
        flat = tensors.flattened(tensor["data"])
        if len(tensor["shape"]) < 2 or len(flat) < 2:
            return False
        tensor["data"] = [flat[:1], flat[1:]] if tensor["shape"][:2] != [2, 1] else [flat, []]
    refuse_variants(s, change, "has rows of different lengths")


# Wrong bodies

@check("body-no-json", MUST, REQUEST, "a body that is no JSON is an error")
def body_no_json(s):
    whole = json.dumps(s.request()).encode()
    for body in (b"{", b"no JSON", whole[:-1], whole + b"}", b"\xff\xfe{}", b"{'inputs': []}"):
        s.refused(s.infer(body), "the body is no JSON")


@check("body-empty", MUST, REQUEST, "a request without a body is an error")
def body_empty(s):
    s.refused(s.infer(b""), "the body is empty")


@check("body-no-object", MUST, REQUEST, "JSON that is no object is an error")
def body_no_object(s):
    for body in (b"[]", b"1", b'"inputs"', b"null", b"true"):
        s.refused(s.infer(body), "the body is no object")


@check("inputs-missing", MUST, REQUEST, "a request without `inputs` is an error")
def inputs_missing(s):
    for body in (b"{}", b'{"id": "1"}'):
        s.refused(s.infer(body), "there is no `inputs`")


@check("inputs-no-array", MUST, REQUEST, "`inputs` that is no array is an error")
def inputs_no_array(s):
    tensor = s.request()["inputs"][0]
    for inputs in (tensor, "x", 1, None):
        s.refused(s.infer(s.request(inputs=inputs)), "`inputs` is no array")


@check("nesting-deep", SHOULD, CLIENTS, "data with ten thousand dimensions is an error, and the server lives on")
def nesting_deep(s):
    deep = b"[" * 10000 + b"]" * 10000
    place = json.dumps(s.changed(lambda tensor: tensor.update(data="@"))).encode()
    for body in (place.replace(b'"@"', deep), b"[" * 10000):
        s.refused(s.infer(body), "nesting of this depth has no use")
    s.alive("deep nesting")
