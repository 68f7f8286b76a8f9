"""The self-test of the suite: a correct server passes all checks, and each check fails for a server with one fault.
Run: python3 test_conformance.py"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here))
sys.dont_write_bytecode = True

import reference_server  # noqa: E402
import suite             # noqa: E402
import wire              # noqa: E402

loader = importlib.machinery.SourceFileLoader("run", str(here / "run"))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)

# Fault of the server: the one check that fails by it.
FAULTS = {
    "not live": "server-live",
    "not ready": "server-ready",
    "model not ready": "model-ready",
    "version not ready": "model-ready-version",
    "odd health body": "health-bodies",
    "extension 7": "server-metadata",
    "no /v2/": "server-metadata-slash",
    "no platform": "model-metadata",
    "no platform of a version": "model-metadata-version",
    "any model": "unknown-model",
    "any version": "unknown-version",
    "any path": "unknown-path",
    "any method": "wrong-method",
    "needs a content type": "request-content-type",
    "closes without a word": "keep-alive-after-error",
    "drops the second of two": "pipelining",
    "slow and mixed": "concurrent-requests",
    "no chunks": "chunked-request",
    "no expectations": "expect-continue",
    "another body for errors": "error-body",
    "a second form for errors": "error-one-form",
    "5xx for faults of clients": "error-status",
    "bare words for NaN": "answer-json",
    "content type of text": "answer-content-type",
    "hangs up for null": "alive-at-the-end",
    "another model name": "infer",
    "another version": "infer-version",
    "one output": "outputs-all",
    "outputs ignored": "outputs-selected",
    "unknown outputs ignored": "output-unknown",
    "elements left out": "output-elements",
    "rank changed": "output-shapes",
    "datatype changed": "output-datatypes",
    "ids of three letters": "id-echoed",
    "ids in ASCII": "id-unicode",
    "made-up id": "id-absent",
    "no flat data": "data-flat",
    "no nested data": "data-nested",
    "columns first": "data-nested",
    "no integers for floats": "data-integers-for-floats",
    "order matters": "input-order",
    "5xx for unknown members": "members-unknown",
    "5xx for no rows": "batch-empty",
    "null for NaN": "non-finite",
    "missing inputs made up": "input-missing",
    "extra inputs ignored": "input-extra",
    "inputs twice": "input-duplicate",
    "skips inputs that are no objects": "input-members",
    "any datatype": "datatype-wrong",
    "unknown datatypes": "datatype-unknown",
    "any rank": "rank-wrong",
    "any size": "dimension-wrong",
    "negative sizes": "dimension-negative",
    "sizes that are no integers": "dimension-no-integer",
    "elements made up": "elements-too-few",
    "elements dropped": "elements-too-many",
    "sizes modulo 2^64": "shape-overflow",
    "words are 0": "data-words",
    "data that is no array": "data-no-elements",
    "fractions are cut": "data-fractions",
    "integers wrap": "data-out-of-range",
    "ragged data": "data-ragged",
    "takes no JSON": "body-no-json",
    "takes an empty body": "body-empty",
    "takes no object": "body-no-object",
    "takes no inputs": "inputs-missing",
    "inputs that are an object": "inputs-no-array",
    "takes deep nesting": "nesting-deep",
    "no binary inputs": "binary-inputs",
    "no mixed inputs": "binary-inputs-mixed",
    "no binary outputs": "binary-outputs-all",
    "no binary output alone": "binary-output-one",
    "no override": "binary-output-override",
    "no binary both ways": "binary-both-ways",
    "lengths without the last bit": "binary-bytes",
    "any binary size": "binary-size-wrong",
    "fewer bytes": "binary-rest-wrong",
    "more bytes ignored": "binary-rest-wrong",
    "ignores the header": "binary-header-wrong",
    "takes a body that was cut": "binary-body-cut",
    "broken lengths": "binary-bytes-broken",
    "data twice": "binary-data-twice",
    "binary NaN is 0": "binary-non-finite",
}
# Faults that other checks cannot help seeing too.
ALSO = {
    "hangs up for null": {"body-no-object"},
    "no binary inputs": {"binary-inputs-mixed", "binary-both-ways", "binary-bytes"},
}


def outcomes(server, model="sample", **options):
    found = list(run.results(wire.Client(server.url, timeout=20), model, **options))
    return {one["name"]: one["outcome"] for one in found}, {one["name"]: one for one in found}


def names(found, outcome):
    return {name for name, one in found.items() if one == outcome}


def command(*words):
    """The exit code of `run` and what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        try:
            code = run.main(list(words))
        except SystemExit as e:
            code = e.code
    return code, out.getvalue()


class Correct(unittest.TestCase):
    def test_every_check_passes(self):
        with reference_server.Server() as server:
            found, whole = outcomes(server)
        self.assertEqual(names(found, "fail"), set(), [whole[name] for name in names(found, "fail")])
        self.assertEqual(names(found, "not applicable"), set(), [whole[name] for name in names(found, "not applicable")])

    def test_models_of_other_forms(self):
        for model in ("every", "plain", "scalar"):
            with self.subTest(model), reference_server.Server() as server:
                found, whole = outcomes(server, model)
                self.assertEqual(names(found, "fail"), set(), [whole[name] for name in names(found, "fail")])
                self.assertGreater(len(names(found, "pass")), 50)


class Faults(unittest.TestCase):
    def test_each_fault_fails_its_check(self):
        for fault, name in FAULTS.items():
            with self.subTest(fault), reference_server.Server(fault) as server:
                found, whole = outcomes(server)
                failed = names(found, "fail")
                self.assertEqual(failed - ALSO.get(fault, set()), {name},
                                 [(one, whole[one]["failures"][:2]) for one in failed ^ {name}])

    def test_each_check_has_a_fault(self):
        self.assertEqual({one.name for one in suite.CHECKS}, set(FAULTS.values()))


class Command(unittest.TestCase):
    def test_exit_codes_and_last_line(self):
        for fault, code, failed in (("", 0, 0), ("made-up id", 0, 1), ("null for NaN", 1, 1)):
            with self.subTest(fault), reference_server.Server(fault) as server:
                got, text = command(server.url, "sample")
                self.assertEqual(got, code, text)
                count = len(suite.CHECKS)
                self.assertEqual(text.splitlines()[-1], f"{count - failed} passed, {failed} failed, 0 not applicable")
                if failed:
                    for word in ("section ", "sent ", "expected ", "got "):
                        self.assertIn(word, text)

    def test_unreachable(self):
        with reference_server.Server() as server:
            url = server.url
        code, text = command(url, "sample")
        self.assertEqual(code, 2)
        self.assertIn("cannot be reached", text)

    def test_only_and_json(self):
        with reference_server.Server("null for NaN") as server:
            code, text = command(server.url, "sample", "--json", "--only", "id-[ae]*", "--only", "non-finite")
            self.assertEqual(code, 1)
            result = json.loads(text)
            self.assertEqual([one["name"] for one in result["checks"]], ["id-echoed", "id-absent", "non-finite"])
            self.assertEqual((result["passed"], result["failed"], result["failed_must"]), (2, 1, 1))
            self.assertEqual(command(server.url, "sample", "--only", "id-absent")[0], 0)
            self.assertIn("no check is named", command(server.url, "sample", "--only", "nothing")[1])

    def test_only_a_check_of_all_answers(self):
        with reference_server.Server("5xx for faults of clients") as server:
            code, text = command(server.url, "sample", "--only", "error-status")
        self.assertEqual((code, text.splitlines()[-1]), (0, "0 passed, 1 failed, 0 not applicable"))

    def test_input(self):
        request = {"inputs": [{"name": "x", "datatype": "FP64", "shape": [3], "data": [[1.0, 2.0], [4.0]]}]}
        with reference_server.Server() as server, tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "request.json")
            pathlib.Path(path).write_text(json.dumps(request))
            code, text = command(server.url, "plain", "--input", path, "--json")
            self.assertEqual(code, 0, text)
            pathlib.Path(path).write_text("{}")
            self.assertIn("no array `inputs`", command(server.url, "plain", "--input", path)[1])

    def test_no_such_model(self):
        with reference_server.Server() as server:
            code, text = command(server.url, "absent")
        self.assertEqual(code, 1)
        self.assertIn("FAIL  MUST       model-metadata", text)


if __name__ == "__main__":
    unittest.main()
