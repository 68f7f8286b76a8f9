"""The list of checks, and what a check is given: the server's metadata, a request that it accepts, and ways to fail."""
import collections
import copy
import dataclasses
import json
import sys
import urllib.parse

import tensors
import wire

MUST, SHOULD, EXTENSION = "MUST", "SHOULD", "extension"
CHECKS = []
JSON_TYPE = {"Content-Type": "application/json"}


@dataclasses.dataclass
class Check:
    name: str
    level: str
    section: str   # the protocol's section, or what else it follows from
    meaning: str
    function: object
    of_all: bool   # about all answers of the run: comes last


def check(name, level, section, meaning, of_all=False):
    def add(function):
        CHECKS.append(Check(name, level, section, meaning, function, of_all))
        return function
    return add


class NotApplicable(Exception):
    pass


class Suite:
    def __init__(self, client, model, input_request=None):
        self.client, self.model = client, model
        self.path = "/v2/models/" + urllib.parse.quote(model, safe="")
        self.failures = []   # of the check that runs: (sent, expected, got)
        self.server = client.send("GET", "/v2")
        if not self.server.status:
            raise wire.Unreachable(f"{client.host}:{client.port} does not answer GET /v2: {self.server.problem}")
        self.metadata = client.send("GET", self.path)
        self.first = None        # the answer to `base`
        self.first_refusal = None
        self.base = self._find_base(input_request)
        self.steady = self._is_steady()

    # Metadata

    def declared(self, which):
        """The metadata's "inputs" or "outputs" by name; those with a form of their own are left to the check of metadata."""
        document = self.metadata.document if self.metadata.ok else None
        listed = document.get(which) if isinstance(document, dict) else None
        return {tensor["name"]: tensor for tensor in listed or [] if is_declaration(tensor)} if isinstance(listed, list) else {}

    def versions(self):
        document = self.metadata.document if self.metadata.ok else None
        versions = document.get("versions") if isinstance(document, dict) else None
        if not versions or not isinstance(versions, list):
            raise NotApplicable("the model's metadata lists no versions")
        return [v for v in versions if isinstance(v, str)]

    # Requests

    def _find_base(self, given):
        """A valid request, with flat data where that is accepted."""
        if given is not None:
            request = copy.deepcopy(given)
            for tensor in request["inputs"]:
                tensor["data"] = tensors.flattened(tensor["data"])
            candidates = [request]
        else:
            inputs = self.declared("inputs").values()
            candidates = [{"inputs": [tensors.make_tensor(declared, dimension, values) for declared in inputs]}
                          for dimension in (2, 1) for values in ("mixed", "ones", "zeros")] if inputs else []
        for form in (copy.deepcopy, nested_request):
            for candidate in candidates:
                answer = self.infer(form(candidate), kind="probe")
                if answer.ok:
                    self.first = answer
                    return form(candidate)
                self.first_refusal = self.first_refusal or answer
        return None

    def _is_steady(self):
        """Whether the same request has the same answer twice, so that answers can be compared."""
        if not self.base:
            return False
        try:
            return tensors.same_outputs(tensors.read_outputs(self.first), tensors.read_outputs(self.infer(self.base)))
        except ValueError:
            return False

    def request(self, **members):
        """A copy of the valid request, with these members."""
        if not self.base:
            raise NotApplicable("no valid request is known: see the check 'infer'")
        return {**copy.deepcopy(self.base), **members}

    def changed(self, change, index=0):
        """A valid request of which `change(tensor)` has changed one input."""
        request = self.request()
        change(request["inputs"][index])
        return request

    def variants(self, change):
        """For each input: its name, and a valid request in which `change(tensor)` changed it; without those for which it
        returned False. Throws NotApplicable if none is left."""
        found = []
        for index, tensor in enumerate(self.request()["inputs"]):
            request = self.request()
            if change(request["inputs"][index]) is not False:
                found.append((tensor["name"], request))
        if not found:
            raise NotApplicable("the model has no input of this kind")
        return found

    def infer(self, request, kind="infer", version=None, headers=None, connection=None):
        path = self.path + (f"/versions/{urllib.parse.quote(version, safe='')}" if version is not None else "") + "/infer"
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        return self.client.send("POST", path, body, JSON_TYPE if headers is None else headers, kind, connection)

    # Outcomes

    def fail(self, exchange, expected, got=None):
        self.failures.append((exchange.request_line(), expected, got if got is not None else exchange.answer_line()))

    def expect(self, condition, exchange, expected, got=None):
        if not condition:
            self.fail(exchange, expected, got)
        return condition

    def refused(self, exchange, why):
        """An error must be the answer. Its body and whether it is a 4xx are the matter of the checks error-…."""
        return self.expect(exchange.is_error, exchange, f"an error status: {why}")

    def accepted(self, exchange, why):
        return self.expect(exchange.ok, exchange, f"status 200: {why}")

    def outputs(self, exchange, why="an answer with outputs"):
        """The outputs of an answer that must be 200, or None."""
        if not self.accepted(exchange, why):
            return None
        try:
            return tensors.read_outputs(exchange)
        except ValueError as e:
            self.fail(exchange, why, f"{e}: {exchange.answer_line()}")
            return None

    def same(self, exchange, why):
        """The answer must be 200 and, for a model that answers the same each time, hold the same values as the first."""
        outputs = self.outputs(exchange, why)
        if outputs is not None and self.steady:
            self.expect(tensors.same_outputs(outputs, tensors.read_outputs(self.first)), exchange,
                        f"{why}, with the same outputs as {self.first.answer_line()}")

    def alive(self, after):
        """The server must still answer the valid request."""
        answer = self.infer(self.request())
        self.accepted(answer, f"the server still answers after {after}")

    def run(self, one):
        """(outcome, reason, failures): "pass", "fail" or "not applicable"."""
        self.failures = []
        try:
            one.function(self)
        except NotApplicable as e:
            if not self.failures:
                return "not applicable", str(e), []
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as e:   # an answer of another form
            last = self.client.log[-1]
            self.fail(last, "an answer of the protocol's form", f"{type(e).__name__} {e}: {last.answer_line()}")
        return ("fail" if self.failures else "pass"), "", self.failures


def is_declaration(tensor):
    return (isinstance(tensor, dict) and isinstance(tensor.get("name"), str) and isinstance(tensor.get("datatype"), str)
            and isinstance(tensor.get("shape"), list) and all(tensors.is_integer(size) for size in tensor["shape"]))


def nested_request(request):
    """With the data of each input in its multi-dimensional form."""
    return {**request, "inputs": [{**t, "data": tensors.nested(tensors.flattened(t["data"]), t["shape"])}
                                  for t in request["inputs"]]}


def flat_request(request):
    return {**request, "inputs": [{**t, "data": tensors.flattened(t["data"])} for t in request["inputs"]]}


# Results

def show(result, most=5):
    word = {"pass": "pass", "fail": "FAIL", "not applicable": "n/a"}[result["outcome"]]
    print(f"{word:4}  {result['level']:9}  {result['name']:24}  {result['meaning']}")
    if result["reason"]:
        print(f"{'':17}{result['reason']}")
    if result["failures"] and result["section"]:
        print(f"{'':17}section   {result['section']}")
    for failure in result["failures"][:most]:
        for word, text in failure.items():
            print(f"{'':17}{word:8}  {text}")
    if len(result["failures"]) > most:
        print(f"{'':17}and {len(result['failures']) - most} more")
    sys.stdout.flush()


def last_line(results):
    counts = collections.Counter(result["outcome"] for result in results)
    return f"{counts['pass']} passed, {counts['fail']} failed, {counts['not applicable']} not applicable"
