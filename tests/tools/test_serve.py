"""hypertune serve: a program in another language answers, by the protocol, through kills, swaps and nonsense."""
import gzip
import http.client
import sys
import threading

from support import *

CONFORMANCE = pathlib.Path(__file__).resolve().parents[1] / "serve/conformance/run"

# Takes tensors of several types. Its answer tells which checkpoint it has.
ANSWERER = r'''
import json, os, pathlib, sys
state = json.loads((pathlib.Path(os.environ["HYPERTUNE_RESTORE"]) / "state.json").read_text())
print("a library that prints")
print(json.dumps({
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}, {"name": "n", "datatype": "INT16", "shape": [-1]},
               {"name": "text", "datatype": "BYTES", "shape": [-1]}],
    "outputs": [{"name": "sum", "datatype": "FP64", "shape": [-1]}, {"name": "same", "datatype": "BYTES", "shape": [-1]},
                {"name": "step", "datatype": "INT64", "shape": [-1]}]}), flush=True)
for line in sys.stdin:
    x, n, text = (tensor["data"] for tensor in json.loads(line)["inputs"])
    if 666 in n:
        os.kill(os.getpid(), 9)
    if 55 in n:
        print("55 is asked", file=sys.stderr, flush=True)
    rows = len(n)
    sums = [float(x[2 * i]) + float(x[2 * i + 1]) + n[i] for i in range(rows)]
    print(json.dumps({"outputs": [{"name": "sum", "datatype": "FP64", "shape": [rows], "data": sums},
                                  {"name": "same", "datatype": "BYTES", "shape": [rows], "data": text},
                                  {"name": "step", "datatype": "INT64", "shape": [rows], "data": [state["step"]] * rows}]}), flush=True)
'''


# Prints more than answers: lines of a log, and now and then an answer too many.
TALKER = r'''
import json, os, sys
print(json.dumps({"level": "info", "msg": "loading"}), flush=True)
print(json.dumps({"inputs": [{"name": "n", "datatype": "INT64", "shape": [1]}], "outputs": [{"name": "same", "datatype": "INT64", "shape": [1]}]}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    n = request["inputs"][0]["data"][0]
    if n % 5 == 0:
        print(json.dumps({"level": "error", "msg": "slow batch"}), flush=True)
    answer = json.dumps({"id": request["id"], "outputs": [{"name": "same", "datatype": "INT64", "shape": [1], "data": [n]}]})
    print(answer + "\n" + answer if n % 7 == 0 else answer[:20] + "\n" + answer if n % 11 == 0 else answer, flush=True)
'''

# Cannot start any more once there is a file.
FRAGILE = r'''
import json, pathlib, sys
if pathlib.Path("gone").exists():
    sys.exit(3)
print(json.dumps({"inputs": [{"name": "n", "datatype": "INT64", "shape": [1]}], "outputs": [{"name": "same", "datatype": "INT64", "shape": [1]}]}), flush=True)
for line in sys.stdin:
    n = json.loads(line)["inputs"][0]["data"][0]
    if n == 666:
        sys.exit(1)
    print(json.dumps({"outputs": [{"name": "same", "datatype": "INT64", "shape": [1], "data": [n]}]}), flush=True)
'''


class ServeCase(Case):
    def served(self, *options, environment={}, program=ANSWERER):
        self.write(program, "answer.py")
        self.environment.update(environment)
        process = self.start("serve", "runs/digits", *options, "--", "python3", "answer.py")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.port = int(process.stdout.readline().rsplit(":", 1)[1])
        wait_until(lambda: self.ask("GET", "/v2/health/ready")[0] == 200, "the server")
        return process

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text.startswith("{") else text

    def infer(self, n):
        status, answer = self.ask("POST", "/v2/models/digits/infer", {"inputs": [
            {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [[1, "Infinity" if n < 0 else 2]]},
            {"name": "n", "datatype": "INT16", "shape": [1], "data": [n]},
            {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["ä\n"]}]})
        return status, {output["name"]: output["data"] for output in answer["outputs"]} if status == 200 else answer

    def status(self):
        return self.ask("GET", "/serve/status")[1]


class Serve(ServeCase):
    def test_it_conforms(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        self.served()
        ran = subprocess.run([sys.executable, CONFORMANCE, f"http://127.0.0.1:{self.port}", "digits", "--json"], capture_output=True,
                             text=True)
        results = json.loads(ran.stdout)
        self.assertEqual([check for check in results["checks"] if check["outcome"] == "fail"], [])
        self.assertEqual(ran.returncode, 0)

    def test_its_program_is_killed_and_kills_itself(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        process = self.served("--min-replicas", "2", "--max-replicas", "2")
        self.assertEqual(self.infer(4)[1] | {"step": None}, {"sum": [7.0], "same": ["ä\n"], "step": None})
        self.assertEqual(self.infer(-1)[1]["sum"], ["Infinity"])
        wrong, stop = [], threading.Event()

        def go_on():
            while not stop.is_set():
                answer = self.infer(4)
                if answer[0] != 200 or answer[1]["sum"] != [7.0]:
                    wrong.append(answer)
        asking = threading.Thread(target=go_on)
        asking.start()
        try:
            for lost in range(1, 4):
                out = subprocess.run(["pgrep", "-f", f"^python3 answer.py"], capture_output=True, text=True).stdout.split()
                own = [pid for pid in out if os.path.realpath(f"/proc/{pid}/cwd") == os.path.realpath(self.folder)]
                os.kill(int(own[0]), signal.SIGKILL)
                wait_until(lambda: self.status()["replicas_lost"] >= lost and self.status()["versions"][0]["replicas"] == 2,
                           "another replica")
        finally:
            stop.set()
            asking.join()
        self.assertEqual(wrong, [])
        status, answer = self.infer(666)
        self.assertEqual(status, 500)
        self.assertRegex(answer["error"], "lost twice.*signal 9")
        self.assertEqual(self.infer(4)[0], 200)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 0)
        self.assertFalse((self.folder / "runs/digits/serving").exists())

    def test_better_checkpoints_take_over_while_the_sweep_goes_on(self):
        self.environment.update(PAUSE="0.2")
        self.write(ANSWERER, "answer.py")
        early = self.start("serve", "runs/digits", "--follow", "--", "python3", "answer.py")
        self.addCleanup(early.communicate)
        self.addCleanup(early.kill)
        self.assertRegex(early.stderr.readline(), "no experiment in 'runs/digits' yet")
        sweep = self.start("run", self.write(SWEEP), "--quiet")
        self.addCleanup(sweep.communicate)
        self.addCleanup(sweep.kill)
        wait_until(lambda: list((self.folder / "runs/digits/trials").glob("*/checkpoints/step-*")), "a checkpoint")
        self.assertRegex(early.stdout.readline(), "http://127.0.0.1:")
        self.served("--follow")
        statuses = {self.infer(1)[0]}
        while sweep.poll() is None:
            statuses.add(self.infer(1)[0])
        self.assertEqual(statuses, {200})
        best = json.loads(self.run_command("best", "runs/digits", "--format", "json")[0])
        wait_until(lambda: self.status()["live"] == f"{best['trial']}-{best['best']['step'] + 1}", "the best version")
        self.assertEqual(self.infer(1)[1]["step"], [best["best"]["step"] + 1])

    def test_what_is_counted_is_what_prometheus_reads(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        self.served()
        for n in range(3):
            self.infer(n)
        self.ask("POST", "/v2/models/digits/infer", {})
        text = self.ask("GET", "/metrics")[1]
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) \w+ .+|\w+\{(\w+="[^"]*",?)+\} [-+\d.e]+|\w+\{(\w+="[^"]*",?)+\} \+?Inf)$')
        self.assertIn('hypertune_serve_requests_total{model="digits",code="200"} 3\n', text)
        self.assertIn('hypertune_serve_requests_total{model="digits",code="400"} 1\n', text)
        self.assertIn('hypertune_serve_request_seconds_count{model="digits"} 3\n', text)

    def test_bytes_that_json_cannot_have_are_not_changed(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        self.served()
        head = json.dumps({"inputs": [
            {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}, {"name": "n", "datatype": "INT16", "shape": [1], "data": [1]},
            {"name": "text", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 6}}]}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.addCleanup(connection.close)
        connection.request("POST", "/v2/models/digits/infer", head + b"\x02\0\0\0\xff\xd8", {"Inference-Header-Content-Length": str(len(head))})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 400)
        self.assertIn("'text' has bytes that are no UTF-8", json.loads(answer.read())["error"])

    def test_processes_that_are_stopped_hold_up_only_their_requests(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        process = self.served("--hang-timeout", "5")
        children = lambda of: [int(pid) for pid in pathlib.Path(f"/proc/{of}/task/{of}/children").read_text().split()]
        keeper = children(process.pid)[0]
        for pid in [keeper, *children(keeper)]:
            os.kill(pid, signal.SIGSTOP)
        self.assertEqual(self.infer(4)[0], 200)   # by the next one
        self.assertEqual(self.status()["replicas_lost"], 1)
        os.kill(children(process.pid)[0], signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 0)

    def test_a_standard_error_that_nobody_reads_stops_nothing(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        self.write(ANSWERER, "answer.py")
        reads, writes = os.pipe()
        self.addCleanup(os.close, reads)
        os.set_blocking(writes, False)
        try:
            while True:
                os.write(writes, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writes, True)
        process = subprocess.Popen([HYPERTUNE, "serve", "runs/digits", "--", "python3", "answer.py"], cwd=self.folder,
                                   env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writes, text=True)
        os.close(writes)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.port = int(process.stdout.readline().rsplit(":", 1)[1])
        wait_until(lambda: self.ask("GET", "/v2/health/ready")[0] == 200, "the server")
        self.assertEqual(self.infer(666)[0], 500)   # which is told, twice
        self.assertEqual(self.infer(4)[0], 200)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0)

    def test_a_standard_error_that_is_gone_costs_no_request(self):
        """As that of a server which has outlived the ssh by which it was started."""
        self.run_command("run", self.write(SWEEP), "--quiet")
        process = self.served()
        process.stderr.close()
        for _ in range(3):
            self.assertEqual(self.infer(55)[0], 200)
        self.assertEqual(self.status()["replicas_lost"], 1)
        process.stderr = None
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def test_what_a_program_prints_beside_its_answers_is_nobodys_answer(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        self.served(program=TALKER)
        wrong = []

        def go_on(first):
            for n in range(first, first + 150):
                status, answer = self.ask("POST", "/predict", {"n": [n]})
                if (status, answer) != (200, {"same": [n]}) and status != 500:
                    wrong.append((n, status, answer))
        clients = [threading.Thread(target=go_on, args=[1000 * i]) for i in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(wrong, [])
        self.assertEqual(self.ask("POST", "/predict", {"n": [5]}), (200, {"same": [5]}))   # after a line of a log

    def test_it_is_not_ready_while_no_program_can_be_started(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        self.served(program=FRAGILE)
        self.assertEqual(self.ask("POST", "/predict", {"n": [1]})[0], 200)
        (self.folder / "gone").touch()
        status, answer = self.ask("POST", "/predict", {"n": [666]})
        self.assertEqual(status, 503)
        self.assertIn("no replica of the model can be started", answer["error"])
        for path in ("/v2/health/ready", "/v2/models/digits/ready"):
            self.assertEqual(self.ask("GET", path)[0], 503)
        self.assertEqual(self.ask("GET", "/v2/health/live")[0], 200)
        (self.folder / "gone").unlink()
        wait_until(lambda: self.ask("GET", "/v2/health/ready")[0] == 200, "another replica")
        self.assertEqual(self.ask("POST", "/predict", {"n": [1]}), (200, {"same": [1]}))

    def test_a_compressed_body_is_refused_by_name(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        self.served()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.addCleanup(connection.close)
        connection.request("POST", "/v2/models/digits/infer", gzip.compress(b"{}"), {"Content-Encoding": "gzip"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 415)
        self.assertIn("'gzip' is not read", json.loads(answer.read())["error"])

    def test_a_program_that_cannot_begin_is_told(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        _, error = self.run_command("serve", "runs/digits", "--", "no-such-program", code=1)
        self.assertRegex(error, "cannot run 'no-such-program'")
        self.write("import json; print(json.dumps({'error': 'no weights'}))", "answer.py")
        _, error = self.run_command("serve", "runs/digits", "--", "python3", "answer.py", code=1)
        self.assertRegex(error, "no weights")
        _, error = self.run_command("serve", "runs/nothing", "--", "true", code=2)
        self.assertRegex(error, "there is no experiment")
        for option, value in [("--canary-time", "-1"), ("--upscale-delay", "nan"), ("--cpus", "1000"), ("--request-timeout", "0"),
                              ("--max-body", "0"), ("--token", "token"), ("--identity", "identity"), ("--name", "a/b"), ("--latency-objective", "-1")]:
            with self.subTest(option):
                self.run_command("serve", "runs/digits", option, value, "--", "true", code=2)
        _, error = self.run_command("serve", "runs/digits", "--pin", "9-99", "--", "true", code=2)
        self.assertRegex(error, "no version '9-99'")

class Clients(ServeCase):
    """Programs of others: those that tests/serve/conformance/clients names."""

    def test_what_others_wrote_understands_it(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        self.served()
        venv = pathlib.Path(os.environ.get("HYPERTUNE_CLIENTS_VENV") or pathlib.Path.home() / ".cache/hypertune-inference-clients")
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        done = subprocess.run([sys.executable, CONFORMANCE.parent / "clients", f"http://127.0.0.1:{self.port}", "digits", "--venv", venv],
                              capture_output=True, text=True, timeout=1200)
        if not (venv / "complete").exists():
            self.skipTest("no Python environment: python3-venv, and pip with an index, are needed")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "prometheus-metrics")
