"""Checks of health, metadata, paths and HTTP, and those about all answers of the run."""
import concurrent.futures
import json

import tensors
from suite import JSON_TYPE, MUST, SHOULD, NotApplicable, check, is_declaration
from wire import MISSING

HTTP = "HTTP (RFC 9110, RFC 9112)"
CLIENTS = "clients depend on it"


# Health

@check("server-live", MUST, "Server Live", "GET /v2/health/live is answered with 200")
def server_live(s):
    s.accepted(s.client.send("GET", "/v2/health/live", kind="health"), "the server is live")


@check("server-ready", MUST, "Server Ready", "GET /v2/health/ready is answered with 200")
def server_ready(s):
    s.accepted(s.client.send("GET", "/v2/health/ready", kind="health"), "the server is ready")


@check("model-ready", MUST, "Model Ready", "GET /v2/models/MODEL/ready is answered with 200")
def model_ready(s):
    s.accepted(s.client.send("GET", s.path + "/ready", kind="health"), "the model is ready")


@check("model-ready-version", MUST, "Model Ready", "a version that the metadata lists is ready under /versions/V/ready")
def model_ready_version(s):
    for version in s.versions():
        s.accepted(s.client.send("GET", f"{s.path}/versions/{version}/ready", kind="health"), f"version {version} is ready")


@check("health-bodies", SHOULD, "Server Live, Model Ready; the client of kserve", "health answers are objects with true: `live` of "
       "/v2/health/live, `ready` of both others")
def health_bodies(s):
    # For /v2/health/ready the protocol's text shows `live`; kserve's client reads `ready`. A server can have both.
    for path, key in (("/v2/health/live", "live"), ("/v2/health/ready", "ready"), (s.path + "/ready", "ready")):
        answer = s.client.send("GET", path, kind="health")
        if answer.ok:
            document = answer.document if isinstance(answer.document, dict) else {}
            s.expect(document.get(key) is True, answer, f'an object with "{key}": true')


# Metadata

@check("server-metadata", MUST, "Server Metadata Response JSON Object", "GET /v2 has name, version and extensions")
def server_metadata(s):
    answer = s.client.send("GET", "/v2")
    document = answer.document if isinstance(answer.document, dict) else {}
    extensions = document.get("extensions")
    s.expect(answer.ok and all(isinstance(document.get(word), str) for word in ("name", "version"))
             and isinstance(extensions, list) and all(isinstance(word, str) for word in extensions), answer,
             "status 200 and an object with strings `name` and `version` and an array of strings `extensions`")


@check("server-metadata-slash", SHOULD, "open_inference_rest.yaml: /v2/", "the server metadata is also at /v2/, as the OpenAPI "
       "description has it")
def server_metadata_slash(s):
    answer = s.client.send("GET", "/v2/")
    redirected = 300 <= answer.status <= 399 and answer.headers.get("location", "").endswith("/v2")
    s.expect(redirected or answer.ok and answer.document == s.server.document, answer, "the answer of GET /v2, or a redirect to it")


def check_model_metadata(s, answer):
    if not s.accepted(answer, "the model's metadata"):
        return
    document = answer.document if isinstance(answer.document, dict) else {}
    s.expect(document.get("name") == s.model, answer, f"`name` is \"{s.model}\"", f"{document.get('name')!r}")
    s.expect(isinstance(document.get("platform"), str), answer, "a string `platform`", f"{document.get('platform')!r}")
    versions = document.get("versions", [])
    s.expect(isinstance(versions, list) and all(isinstance(v, str) for v in versions), answer,
             "`versions` is absent or an array of strings", f"{versions!r}")
    for which in ("inputs", "outputs"):
        listed = document.get(which)
        if not s.expect(isinstance(listed, list), answer, f"an array `{which}`", f"{listed!r}"):
            continue
        for tensor in listed:
            good = is_declaration(tensor) and min(tensor["shape"], default=0) >= -1
            known = good and tensor["datatype"] in (*tensors.DATATYPES, "BF16")
            s.expect(known, answer, f"each of `{which}` has a string `name`, a `datatype` of the protocol, and a `shape` of "
                     "integers, with -1 for a variable size", f"{tensor!r}")


@check("model-metadata", MUST, "Model Metadata Response JSON Object", "GET /v2/models/MODEL has name, platform, inputs, outputs")
def model_metadata(s):
    check_model_metadata(s, s.client.send("GET", s.path, kind="model"))


@check("model-metadata-version", MUST, "Model Metadata", "a version that the metadata lists has metadata under /versions/V")
def model_metadata_version(s):
    for version in s.versions():
        check_model_metadata(s, s.client.send("GET", f"{s.path}/versions/{version}", kind="model"))


# What is not there

def check_unknown(s, path, what):
    request = s.base or {"inputs": []}
    s.refused(s.client.send("GET", path, kind="model"), f"there is no such {what}")
    body = json.dumps(request).encode()
    s.refused(s.client.send("POST", path + "/infer", body, JSON_TYPE, "infer"), f"there is no such {what}")
    ready = s.client.send("GET", path + "/ready")
    s.expect(ready.status and not ready.ok, ready, f"not status 200: there is no such {what}")


@check("unknown-model", MUST, "Model Metadata Response JSON Error Object", "metadata, readiness and inference of an unknown "
       "model are errors")
def unknown_model(s):
    check_unknown(s, "/v2/models/no-such-model-here", "model")


@check("unknown-version", MUST, "Model Metadata Response JSON Error Object", "metadata, readiness and inference of an unknown "
       "version are errors")
def unknown_version(s):
    check_unknown(s, s.path + "/versions/no-such-version", "version")


@check("unknown-path", SHOULD, HTTP, "a path that the protocol does not have is an error")
def unknown_path(s):
    for path in ("/v2/no-such-path", s.path + "/no-such-path"):
        s.refused(s.client.send("GET", path), "there is no such path")


@check("wrong-method", SHOULD, HTTP, "a method that a path does not have is a 4xx, best 405 with Allow")
def wrong_method(s):
    for method, path in (("GET", s.path + "/infer"), ("DELETE", s.path), ("POST", "/v2/health/live")):
        answer = s.client.send(method, path)
        s.expect(400 <= answer.status <= 499, answer, "status 405, or another 4xx")


# HTTP

@check("request-content-type", SHOULD, CLIENTS, "a JSON request is taken without Content-Type, and with a charset in it")
def request_content_type(s):
    for headers in ({}, {"Content-Type": "application/json; charset=utf-8"}):
        s.same(s.infer(s.request(), headers=headers), f"taken with {headers or 'no Content-Type'}")


@check("keep-alive-after-error", SHOULD, HTTP, "a connection can be used again after an error, or is closed with "
       "Connection: close")
def keep_alive_after_error(s):
    connection = s.client.connection()
    try:
        error = s.infer(b"{", "alone", connection=connection)
        if "close" in error.headers.get("connection", "").lower():
            return
        if s.refused(s.infer(b"{", "alone", connection=connection), "a second wrong request on the same connection"):
            s.accepted(s.infer(s.request(), "alone", connection=connection), "a valid request on the same connection")
    finally:
        connection.close()


@check("pipelining", SHOULD, HTTP, "two requests that are sent at once are answered in their order")
def pipelining(s):
    requests, data = [], b""
    for id in ("first-of-two", "second-of-two"):
        body = json.dumps(s.request(id=id)).encode()
        data += s.client.head("POST", s.path + "/infer", {**JSON_TYPE, "Content-Length": len(body)}) + body
        requests.append(("POST", s.path + "/infer", body, "alone"))
    for answer, id in zip(s.client.raw(data, requests), ("first-of-two", "second-of-two")):
        got = answer.document.get("id") if isinstance(answer.document, dict) else None
        s.expect(answer.ok and got == id, answer, f"status 200 with the id {id}")


@check("concurrent-requests", MUST, "Inference Request JSON Object: id", "requests at the same time get their own answers: the "
       "ids match")
def concurrent_requests(s):
    bodies = [s.request(id=f"request-{i}") for i in range(40)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda body: s.infer(body, kind="probe"), bodies))
    taken = [(body, answer) for body, answer in zip(bodies, answers) if answer.status not in (429, 503)]   # it may be busy
    if not taken:
        raise NotApplicable("the server was busy for all of 40 requests")
    for body, answer in taken:
        got = answer.document.get("id") if isinstance(answer.document, dict) else None
        if not s.expect(answer.ok and got == body["id"], answer, f"status 200 with the id {body['id']}"):
            return


@check("chunked-request", SHOULD, HTTP, "a request with Transfer-Encoding: chunked is taken, or refused with 411")
def chunked_request(s):
    body = json.dumps(s.request(id="in-chunks")).encode()
    parts = (body[:7], body[7:])
    data = s.client.head("POST", s.path + "/infer", {**JSON_TYPE, "Transfer-Encoding": "chunked"})
    data += b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    answer, = s.client.raw(data, [("POST", s.path + "/infer", body, "alone")])
    s.expect(answer.ok or answer.status == 411, answer, "status 200, or 411")


@check("expect-continue", SHOULD, HTTP, "a request with Expect: 100-continue, as curl sends for a large body, is answered")
def expect_continue(s):
    body = json.dumps(s.request(id="expected")).encode()
    head = s.client.head("POST", s.path + "/infer", {**JSON_TYPE, "Content-Length": len(body), "Expect": "100-continue"})
    answer, = s.client.raw(head + body, [("POST", s.path + "/infer", body, "alone")])
    s.expect(answer.ok or answer.status == 417, answer, "status 200, or 417")


# About all answers of the run. Their messages name the first few.

def expect_of_all(s, exchanges, good, expected):
    for exchange in [exchange for exchange in exchanges if not good(exchange)][:3]:
        s.fail(exchange, expected)


def has_error(exchange):
    return isinstance(exchange.document, dict) and isinstance(exchange.document.get("error"), str)


@check("error-body", MUST, "Inference Response JSON Error Object", "each error of inference and metadata is an object with a "
       "string `error`", of_all=True)
def error_body(s):
    errors = [e for e in s.client.log if e.is_error and e.kind in ("infer", "model")]
    expect_of_all(s, errors, has_error, "an object with a string `error`")


@check("error-one-form", SHOULD, CLIENTS, 'all errors of all paths have one form: exactly {"error": "..."}', of_all=True)
def error_one_form(s):
    errors = [e for e in s.client.log if e.is_error and (e.kind == "other" or e.kind in ("infer", "model") and has_error(e))]
    expect_of_all(s, errors, lambda e: has_error(e) and len(e.document) == 1, 'exactly {"error": "..."}')


@check("error-status", SHOULD, HTTP, "a request that is wrong is answered with a 4xx (typically 400), not with a 5xx", of_all=True)
def error_status(s):
    errors = [e for e in s.client.log if e.is_error and e.kind in ("infer", "model", "other")]
    expect_of_all(s, errors, lambda e: e.status < 500, "a 4xx: the request is at fault")


@check("answer-json", MUST, "HTTP/REST", "the answers of inference and metadata are JSON, without the words NaN and Infinity", of_all=True)
def answer_json(s):
    answers = [e for e in s.client.log if e.ok and e.kind in ("infer", "model", "probe")]
    expect_of_all(s, answers, lambda e: e.document is not MISSING and e.strict, "JSON (RFC 8259)")


@check("answer-content-type", SHOULD, "Inference Request Examples", "each JSON answer has Content-Type: application/json",
       of_all=True)
def answer_content_type(s):
    answers = [e for e in s.client.log if e.document is not MISSING and "inference-header-content-length" not in e.headers]
    wrong = [e for e in answers if not e.headers.get("content-type", "").lower().startswith("application/json")]
    for exchange in wrong[:3]:
        s.fail(exchange, "Content-Type: application/json", f"Content-Type: {exchange.headers.get('content-type')}")


@check("alive-at-the-end", MUST, "Server Live", "the server has answered each request, and still answers", of_all=True)
def alive_at_the_end(s):
    expect_of_all(s, [e for e in s.client.log if e.kind != "alone"], lambda e: e.status, "an answer")
    if s.base:
        s.alive("the run")
