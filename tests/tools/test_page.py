"""hypertune dashboard and run --dashboard: no client ends them, and no trial makes them read what is elsewhere."""
import re
import socket
import ssl
import urllib.request

from support import *

SWEEP = """\
name: page
space:
  x: {uniform: [0, 1]}
metric: loss
mode: min
samples: 1
trial: {command: [sh, -c, "while [ ! -e %s ]; do sleep 0.05; done; echo '{{\\"loss\\": 0.5}}'"]}
output: runs/page
"""


def too_large(host):
    """Requests with more than 64 KiB of headers, by what there is too much of."""
    start = b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n"
    return {
        "long headers": start + (b"X: " + b"a" * 10_000 + b"\r\n") * 7 + b"\r\n",
        "short headers": start + b"X: 0123456789\r\n" * 10_000 + b"\r\n",
        "known headers": start + (b"Cookie: " + b"a" * 10_000 + b"\r\n") * 7 + b"\r\n",
    }


class Page(Case):
    def ask(self, port, request, secure=False):
        """The status of the answer, and its text."""
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            if secure:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                connection = context.wrap_socket(connection)
            answer = b""
            try:
                connection.sendall(request)
                while piece := connection.recv(65536):
                    answer += piece
            except (ConnectionError, ssl.SSLError):
                pass   # it was cut off while it still sent
            connection.close()
        return int(answer[9:12] or 0), answer

    def lives_through_all(self, process, port, secure=False, lives=200):
        for host in (b"localhost", b"evil.example"):
            for what, request in too_large(host).items():
                with self.subTest(what=what, host=host):
                    self.assertEqual(self.ask(port, request, secure)[0], 431)
                    self.assertIsNone(process.poll())
        plain = b"GET /api/experiments HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        self.assertEqual(self.ask(port, plain, secure)[0], lives)
        self.assertIsNone(process.poll())

    def dashboard(self, *arguments):
        process = self.start("dashboard", *arguments)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        return process, int(re.search(r"https?://[^\s/]*:(\d+)/", line).group(1))

    def finished(self):
        self.write(SWEEP % "go")
        self.write("", "go")
        self.run_command("run", "sweep.yaml", "--quiet")

    def test_no_request_ends_it(self):
        self.finished()
        process, port = self.dashboard("runs/page", "--port", "0")
        self.lives_through_all(process, port)

    def test_no_stranger_ends_it_through_tls(self):
        self.finished()
        process, port = self.dashboard("runs/page", "--port", "0", "--listen", "0.0.0.0")
        self.lives_through_all(process, port, secure=True, lives=401)

    def test_no_request_ends_a_run(self):
        self.write(SWEEP % "go")
        process = self.start("run", "sweep.yaml", "--dashboard", "--port", "0")
        self.addCleanup(process.kill)
        lines = iter(process.stderr.readline, "")
        found = next(filter(None, (re.search(r"the page of this run is http://[^\s/]*:(\d+)/", line) for line in lines)))
        port = int(found.group(1))
        self.lives_through_all(process, port)
        self.write("", "go")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.results("runs/page")[0]["metrics"]["loss"], 0.5)


if __name__ == "__main__":
    unittest.main()
