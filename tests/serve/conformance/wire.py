"""HTTP exchanges with the server under test. Every exchange is kept, since some checks are about all answers of a run."""
import http.client
import io
import json
import socket
import ssl
import urllib.parse

MISSING = object()   # what Exchange.document is when the body is no JSON


def shown(data, most=400):
    """A body, short enough to print."""
    text = data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else str(data)
    text = " ".join(text.split()) if len(text) < 100000 else text
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def parse(data):
    """The JSON value of these bytes, and whether they are JSON as RFC 8259 has it: without the words NaN and Infinity."""
    words = []

    def constant(word):
        words.append(word)
        return float(word)

    return json.loads(data.decode(), parse_constant=constant), not words


class Exchange:
    """A request and its answer. `status` is 0 if there was no answer; `problem` says why."""

    def __init__(self, method, path, sent, kind):
        self.method, self.path, self.sent, self.kind = method, path, sent, kind
        self.status, self.headers, self.body, self.problem = 0, {}, b"", ""
        self.document, self.strict = MISSING, False

    def answered(self, answer):
        self.body = answer.read()
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        try:
            self.document, self.strict = parse(self.json_part())
        except (ValueError, RecursionError):
            pass

    def json_part(self):
        length = self.headers.get("inference-header-content-length", "")
        return self.body[:int(length)] if length.isdecimal() else self.body

    def binary_part(self):
        return self.body[len(self.json_part()):]

    @property
    def ok(self):
        return self.status == 200

    @property
    def is_error(self):
        return 400 <= self.status <= 599

    def request_line(self):
        return f"{self.method} {self.path} {shown(self.sent)}".rstrip()

    def answer_line(self):
        return f"{self.status} {shown(self.body)}".rstrip() if self.status else f"no answer: {self.problem}"


class KeptReader(io.BufferedReader):
    """Several http.client.HTTPResponse read from this one buffer; the first must not close it."""

    def close(self):
        pass

    def makefile(self, *_, **__):
        return self


class Unreachable(Exception):
    pass


class Client:
    def __init__(self, url, token=None, insecure=False, timeout=30):
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is no http:// or https:// address")
        self.host, self.prefix, self.timeout = parts.hostname, parts.path.rstrip("/"), timeout
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.tls = None
        if parts.scheme == "https":
            self.tls = ssl.create_default_context()
            if insecure:
                self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self.always = {"Authorization": f"Bearer {token}"} if token else {}
        self.log = []

    def connection(self):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)

    def reach(self):
        """Throws Unreachable if no connection can be made."""
        connection = self.connection()
        try:
            connection.connect()
        except OSError as e:
            raise Unreachable(f"{self.host}:{self.port} cannot be reached: {e}") from e
        finally:
            connection.close()

    def send(self, method, path, body=None, headers=None, kind="other", connection=None):
        """One request. `kind` says what the answer is of: "infer", "model" or "other". Checks of all answers leave out those of
        kind "health" (it may be bad), "probe" (it may be refused) and "alone" (it need not even be answered)."""
        exchange = Exchange(method, path, body if body is not None else "", kind)
        own = connection is None
        connection = connection or self.connection()
        try:
            try:
                connection.request(method, self.prefix + path, body, {**self.always, **(headers or {})})
            except (BrokenPipeError, ConnectionResetError):
                pass   # it answered before it had read everything: its answer can still be there
            exchange.answered(connection.getresponse())
        except (OSError, http.client.HTTPException) as e:
            exchange.problem = f"{type(e).__name__}: {e}"
            connection.close()
        finally:
            if own:
                connection.close()
        self.log.append(exchange)
        return exchange

    def head(self, method, path, headers):
        """The bytes of a request's head."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        lines = [f"{method} {self.prefix}{path} HTTP/1.1", f"Host: {host}:{self.port}"]
        lines += [f"{name}: {value}" for name, value in {**self.always, **headers}.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def raw(self, data, requests, end=False):
        """Sends bytes as they are, then reads one answer for each of `requests`: (method, path, body, kind). With `end`,
        nothing more can follow them: the sending direction is closed."""
        exchanges = [Exchange(*request) for request in requests]
        connection = self.connection()
        try:
            connection.connect()
            connection.sock.sendall(data)
            if end:
                if self.tls:
                    connection.sock.unwrap()
                else:
                    connection.sock.shutdown(socket.SHUT_WR)
            reader = KeptReader(connection.sock.makefile("rb", buffering=0))
            for exchange in exchanges:
                answer = http.client.HTTPResponse(reader, method=exchange.method)
                answer.begin()
                exchange.answered(answer)
        except (OSError, ValueError, http.client.HTTPException) as e:
            for exchange in exchanges:
                exchange.problem = exchange.problem or f"{type(e).__name__}: {e}"
        finally:
            connection.close()
        self.log += exchanges
        return exchanges
