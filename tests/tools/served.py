"""What the tests of `hypertune serve` in other places share: an experiment and a program that answers, both without Python,
and clients that ask without a pause."""
import http.client
import random
import socket
import ssl
import threading

from support import *

SERVED_SWEEP = """\
name: digits
trial: {command: [./train.sh, "{rate}"]}
space: {rate: {uniform: [0, 1]}}
metric: loss
mode: min
samples: 3
seed: 1
output: runs/digits
"""
SERVED_TRAINER = r'''#!/bin/sh
mkdir -p "$HYPERTUNE_CHECKPOINT/last"
echo 1000 >"$HYPERTUNE_CHECKPOINT/last/offset"
echo "{\"step\": 0, \"loss\": $1, \"checkpoint\": \"last\"}"
'''
# y = x + 1000. It is ready when the file `begin` is beside it, and answers x = 7 when the file `release` is.
ANSWERER = r'''#!/bin/sh
here=${0%/*}
offset=$(cat "$HYPERTUNE_RESTORE/offset")
until [ -e "$here/begin" ]; do sleep 0.1; done
echo '{"inputs": [{"name": "x", "datatype": "INT64", "shape": [1]}], "outputs": [{"name": "y", "datatype": "INT64", "shape": [1]}]}'
while read -r line; do
  x=${line##*[}
  x=${x%%]*}
  if [ "$x" = 7 ]; then
    echo "seven is asked" >&2
    until [ -e "$here/release" ]; do sleep 0.1; done
  fi
  echo "{\"outputs\": [{\"name\": \"y\", \"datatype\": \"INT64\", \"shape\": [1], \"data\": [$((x + offset))]}]}"
done
'''


def make_served(case, folder):
    """In `folder`: the experiment runs/digits and answer.sh, which may begin."""
    folder.mkdir(exist_ok=True)
    for name, text in (("train.sh", SERVED_TRAINER), ("answer.sh", ANSWERER), ("sweep.yaml", SERVED_SWEEP)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "begin").touch()
    done = subprocess.run([HYPERTUNE, "run", "sweep.yaml", "--quiet"], cwd=folder, capture_output=True, text=True)
    case.assertEqual(done.returncode, 0, done.stderr)


class Client:
    """Asks a server, each time by a connection of its own."""

    def __init__(self, authority=None, token=None, name="hypertune-serve"):
        """`authority`: a file with the certificate, which is for `name`; None: without TLS."""
        self.context = ssl.create_default_context(cafile=authority) if authority else None
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.name = name

    def ask(self, at, method, path, body=None, headers=None, timeout=120):
        """`at`: (address, port). OSError or HTTPException: there was no answer."""
        with socket.create_connection(at, timeout=timeout) as plain:
            link = self.context.wrap_socket(plain, server_hostname=self.name) if self.context else plain
            connection = http.client.HTTPConnection(self.name if self.context else "127.0.0.1", at[1])
            connection.sock = link
            try:
                connection.request(method, path, None if body is None else json.dumps(body),
                                   self.headers if headers is None else headers)
                answer = connection.getresponse()
                text = answer.read().decode()
            finally:
                connection.close()
        return answer.status, json.loads(text) if text.startswith("{") else text

    def predict(self, at, x, **more):
        return self.ask(at, "POST", "/predict", {"x": [x]}, **more)

    def ready(self, at):
        try:
            return self.ask(at, "GET", "/v2/health/ready", headers={})[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def accepts(self, at):
        try:
            socket.create_connection(at, timeout=30).close()
            return True
        except OSError:
            return False


class Load:
    """Requests without a pause by several threads, of the servers that `places()` names at that moment."""

    def __init__(self, client, places, threads=3):
        self.client, self.places = client, places
        self.right, self.wrong, self.cut = 0, [], []  # answers, wrong ones, and requests without an answer: (place, why)
        self.guard, self.over = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.go_on, args=(number,)) for number in range(threads)]

    def go_on(self, seed):
        dice = random.Random(seed)
        while not self.over.is_set():
            places = self.places()
            if not places:  # on a machine so busy that probes fail
                self.over.wait(0.1)
                continue
            at, x = dice.choice(places), dice.randrange(100, 1000)
            try:
                status, answer = self.client.predict(at, x)
            except (OSError, http.client.HTTPException) as error:
                with self.guard:
                    self.cut.append((at, repr(error)))
                continue
            with self.guard:
                if (status, answer) == (200, {"y": [x + 1000]}):
                    self.right += 1
                else:
                    self.wrong.append((at, status, answer))

    def more(self, count, seconds=90):
        """Until so many more were answered."""
        goal = self.right + count
        wait_until(lambda: self.right >= goal or self.wrong, f"answers: {self.cut[-3:]}", seconds)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def in_background(call):
    """Starts call(); what is returned waits for its result."""
    result = []

    def keep():
        try:
            result.append(call())
        except (OSError, http.client.HTTPException) as error:
            result.append(error)
    thread = threading.Thread(target=keep)
    thread.start()

    def finish():
        thread.join()
        return result[0]
    return finish


__all__ = ["Client", "Load", "in_background", "make_served"]
