"""Tensors of the protocol's datatypes: made, flattened, nested, read from an answer, and compared."""
import math
import struct

FORMATS = {"BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i",
           "INT64": "q", "FP16": "e", "FP32": "f", "FP64": "d"}
FLOATS = ("FP16", "FP32", "FP64", "BF16")
INTEGERS = tuple(name for name in FORMATS if "INT" in name)
DATATYPES = (*FORMATS, "BYTES")
NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
LARGEST = {"FP16": 65504.0, "FP32": 3.4028234e38, "FP64": 1.7976931348623157e308, "BF16": 3.3e38}


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def integer_range(datatype):
    bits = int(datatype.split("INT")[1])
    return (0, 2**bits - 1) if datatype.startswith("U") else (-2**(bits - 1), 2**(bits - 1) - 1)


def one_value(datatype, number):
    """A small number as an element of this datatype."""
    if datatype == "BOOL":
        return number % 2 == 1
    if datatype == "BYTES":
        return str(number)
    return float(number) if datatype in FLOATS else number


def make_tensor(declared, dimension, values):
    """A tensor for the metadata's declaration. Each -1 becomes `dimension`; `values`: "mixed", "ones" or "zeros"."""
    shape = [dimension if size == -1 else size for size in declared["shape"]]
    number = {"mixed": lambda i: i % 3, "ones": lambda i: 1, "zeros": lambda i: 0}[values]
    data = [one_value(declared["datatype"], number(i)) for i in range(math.prod(shape))]
    return {"name": declared["name"], "shape": shape, "datatype": declared["datatype"], "data": data}


def flattened(data):
    """The elements of a JSON array, nested or not. The nesting can be deep, so this does not call itself."""
    if not isinstance(data, list):
        return [data]
    flat, stack = [], [iter(data)]
    while stack:
        for item in stack[-1]:
            if isinstance(item, list):
                stack.append(iter(item))
                break
            flat.append(item)
        else:
            stack.pop()
    return flat


def nested(flat, shape):
    if len(shape) <= 1:
        return flat
    step = math.prod(shape[1:])
    return [nested(flat[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


def to_bytes(datatype, flat):
    """Elements as the binary tensor data extension has them; None for a datatype without a binary form here."""
    if datatype == "BYTES":
        texts = [value if isinstance(value, bytes) else str(value).encode() for value in flat]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    if datatype not in FORMATS:
        return None
    return struct.pack(f"<{len(flat)}{FORMATS[datatype]}", *(NON_FINITE.get(v, v) if isinstance(v, str) else v for v in flat))


def from_bytes(datatype, data):
    """The opposite. Throws ValueError."""
    if datatype == "BYTES":
        texts, at = [], 0
        while at < len(data):
            if at + 4 > len(data):
                raise ValueError("BYTES data ends within a length")
            length, at = struct.unpack_from("<I", data, at)[0], at + 4
            if at + length > len(data):
                raise ValueError("BYTES data ends within an element")
            texts.append(data[at:at + length])
            at += length
        return texts
    if datatype not in FORMATS:
        raise ValueError(f"{datatype} has no binary form")
    size = struct.calcsize("<" + FORMATS[datatype])
    if len(data) % size:
        raise ValueError(f"{len(data)} bytes are no multiple of the {size} of {datatype}")
    return [value for value, in struct.iter_unpack("<" + FORMATS[datatype], data)]


def fits(datatype, value):
    """Whether a JSON value can be an element of this datatype. null is the matter of another check."""
    if value is None:
        return True
    if datatype == "BOOL":
        return isinstance(value, bool)
    if datatype == "BYTES":
        return isinstance(value, str)
    if datatype in INTEGERS:
        low, high = integer_range(datatype)
        return is_integer(value) and low <= value <= high
    if isinstance(value, str):
        return value.lower().lstrip("+-") in ("nan", "inf", "infinity")
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read_outputs(exchange):
    """The outputs of a 200 answer by name: (datatype, shape, flat data), from JSON or from the bytes that follow it. Throws
    ValueError if the answer has not that form."""
    document = exchange.document
    if not isinstance(document, dict) or not isinstance(document.get("outputs"), list):
        raise ValueError("the answer is no object with an array `outputs`")
    rest, outputs = exchange.binary_part(), {}
    for output in document["outputs"]:
        if not isinstance(output, dict):
            raise ValueError("an output is no object")
        name, datatype, shape = output.get("name"), output.get("datatype"), output.get("shape")
        if not isinstance(name, str) or not isinstance(datatype, str):
            raise ValueError("an output has no string `name` or no string `datatype`")
        if not isinstance(shape, list) or not all(is_integer(size) and size >= 0 for size in shape):
            raise ValueError(f"output '{name}' has no `shape` of integers")
        size = (output.get("parameters") or {}).get("binary_data_size")
        if size is not None:
            if not is_integer(size) or not 0 <= size <= len(rest):
                raise ValueError(f"output '{name}' has binary_data_size {size}, but {len(rest)} bytes are left")
            outputs[name], rest = (datatype, shape, from_bytes(datatype, rest[:size])), rest[size:]
        elif isinstance(output.get("data"), list):
            outputs[name] = (datatype, shape, flattened(output["data"]))
        else:
            raise ValueError(f"output '{name}' has no array `data`")
    if rest:
        raise ValueError(f"{len(rest)} bytes follow the last output")
    return outputs


def same_element(a, b):
    """As numbers, or as texts. null is the same as any number that is not finite: another check is about it."""
    a, b = (value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in (a, b))
    a, b = (NON_FINITE.get(value, value) if isinstance(value, str) else value for value in (a, b))
    numbers = (int, float)
    if a is None or b is None:
        return all(value is None or isinstance(value, float) and not math.isfinite(value) for value in (a, b))
    if isinstance(a, numbers) and isinstance(b, numbers):
        if a != a or b != b:
            return a != a and b != b
        return a == b or math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-6)
    return a == b


def same_outputs(a, b):
    return a.keys() == b.keys() and all(
        a[name][:2] == b[name][:2] and len(a[name][2]) == len(b[name][2]) and all(map(same_element, a[name][2], b[name][2]))
        for name in a)
