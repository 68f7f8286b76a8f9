"""hypertune study: ask/tell over HTTP."""
import resource
import select
import socket
import threading
import urllib.error
import urllib.request

from support import *

STUDY = """\
name: study
space:
  x: {uniform: [-1, 1]}
  kind: {choice: [a, b]}
metric: loss
mode: min
samples: 8
schedule: {type: asha, grace_period: 1, max_steps: 4, reduction_factor: 2}
output: runs/study
"""


class Study(Case):
    def serve(self, *arguments, **options):
        process = self.start("study", "study.yaml", *arguments, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.address = process.stdout.readline().strip()
        self.assertTrue(self.address.startswith("http://127.0.0.1:"), self.address or process.stderr.read())
        return process

    def call(self, method, path, body=None, code=200, headers={}):
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data=data, method=method,
                                         headers={"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        self.assertEqual(status, code, text)
        return json.loads(text)

    def test_attributes_and_a_person_elsewhere(self):
        self.write(STUDY, "study.yaml")
        process = self.serve()
        for _ in range(3):
            self.call("POST", "/ask", {})
        self.call("POST", "/report", {"trial": 0, "value": 1, "attributes": {"phase": "warm-up"}})
        self.call("POST", "/tell", {"trial": 1, "value": 1, "attributes": {"n": 3, "x": 0.5, "keep": True}})
        self.call("POST", "/tell", {"trial": 0, "state": "failed", "attributes": {"phase": "decay"}})
        self.assertEqual(self.call("POST", "/note", {"trial": 1, "attributes": {"note": "noisy"}}), {"trial": 1})
        self.assertEqual(self.call("POST", "/note", {"attributes": {"dataset": "v3"}}), {"trial": None})
        for body in ({}, {"trial": 1, "attributes": 3}, {"attributes": {"a": []}}, {"attributes": {"": 1}},
                     {"attributes": {"n" * 200: 1}}, {"note": "x"}):
            self.assertIn("error", self.call("POST", "/note", body, code=400))
        self.call("POST", "/note", {"trial": 99, "attributes": {"a": 1}}, code=409)
        self.assertEqual([trial.get("attributes") for trial in self.results("runs/study")],
                         [{"phase": "decay"}, {"n": 3, "x": 0.5, "keep": True, "note": "noisy"}, None])
        self.run_command("stop", "runs/study", "2")
        self.assertEqual(self.call("POST", "/report", {"trial": 2, "value": 1})["decision"], "stop")
        self.run_command("stop", "runs/study")
        process.wait(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.results("runs/study")[2]["state"], "stopped")

    def test_ask_tell_report_best(self):
        self.write(STUDY, "study.yaml")
        self.serve()
        for i in range(4):
            asked = self.call("POST", "/ask", {})
            self.assertEqual(asked["trial"], i)
            self.assertEqual(set(asked["params"]), {"x", "kind"})
            self.call("POST", "/tell", {"trial": i, "value": asked["params"]["x"] ** 2})
        best = self.call("GET", "/best")
        self.assertIn(best["trial"], range(4))
        asked = self.call("POST", "/ask", b"")
        self.assertIn(self.call("POST", "/report", {"trial": asked["trial"], "step": 0, "value": 100})["decision"], ("continue", "stop", "pause"))
        failed = self.call("POST", "/ask", {})
        self.call("POST", "/tell", {"trial": failed["trial"], "state": "failed"})
        results = self.results("runs/study")
        self.assertEqual(sum(r["state"] == "failed" for r in results), 1)

    def test_a_trial_whose_client_has_died_is_given_out_again(self):
        text = STUDY.replace("samples: 8", "samples: 2").replace("schedule:", "#")
        self.write(text, "study.yaml")
        process = self.serve()
        for trial in (0, 1):
            self.assertEqual(self.call("POST", "/ask", {})["trial"], trial)
        self.assertEqual(self.call("POST", "/ask", {}), {"trial": None, "exhausted": False, "out": [0, 1]})
        self.call("POST", "/tell", {"trial": 0, "value": 1})
        self.assertEqual(self.call("POST", "/ask", {}), {"trial": None, "exhausted": False, "out": [1]})
        self.run_command("stop", "runs/study")
        process.wait(timeout=30)
        self.serve("--resume", "--set", "hang_timeout=10ms", "--set", "failures={max_retries: 1}")
        self.assertEqual(self.call("POST", "/ask", {})["trial"], 1)
        wait_until(lambda: self.call("POST", "/ask", {})["trial"] == 1, "the trial again")
        wait_until(lambda: self.call("POST", "/ask", {}) == {"trial": None, "exhausted": True, "out": []}, "its end")
        failed = self.results("runs/study")[1]
        self.assertEqual((failed["state"], failed["cause"]), ("failed", "not heard of for 0.01 s"))

    def test_steps_rise(self):
        self.write(STUDY.replace("schedule:", "#"), "study.yaml")
        process = self.serve()
        self.call("POST", "/ask", {})
        report = lambda code=200, **more: self.call("POST", "/report", {"trial": 0, **more}, code=code)
        report(value=1, step=5)
        self.assertEqual(report(value=1, step=5), {"decision": "continue"})  # its answer was lost
        for step, value, says in ((3, 0.5, "and this is step 3: steps rise"), (5, 0.5, "and this is step 5 with other values")):
            error = report(code=409, value=value, step=step)["error"]
            self.assertIn("trial 0 has reported step 5 already, " + says, error)
        report(value="nan", step=6)
        report(value="nan", step=6)
        report(value=0.25)
        self.assertEqual([r["step"] for r in self.results("runs/study", history=True)[0]["history"]], [5, 6, 7])
        self.run_command("stop", "runs/study")
        process.wait(timeout=30)
        self.serve("--resume")
        self.assertEqual(self.call("POST", "/ask", {})["trial"], 0)
        report(value=1, step=0)  # from the beginning: what it did before is known
        report(value=1, step=1)

    def test_reports_are_answered_while_others_ask(self):
        self.write(STUDY.replace("samples: 8", "samples: 60").replace("schedule:", "search: gp\nschedule:"), "study.yaml")
        self.serve()
        first = self.call("POST", "/ask", {})["trial"]
        asked, failures = [], []

        def ask():
            try:
                for _ in range(12):
                    answer = self.call("POST", "/ask", {})
                    asked.append(answer["trial"])
                    self.call("POST", "/tell", {"trial": answer["trial"], "value": answer["params"]["x"]})
            except BaseException as error:  # noqa: B902: shown by the main thread
                failures.append(error)

        askers = [threading.Thread(target=ask) for _ in range(3)]
        for asker in askers:
            asker.start()
        decisions = [self.call("POST", "/report", {"trial": first, "step": 0, "value": -1})["decision"] for _ in range(20)]
        for asker in askers:
            asker.join(60)
        self.assertEqual(failures, [])
        self.assertEqual(set(decisions), {"continue"})
        self.assertEqual(sorted(asked), list(range(1, 37)))

    def test_nonsense_is_answered_and_changes_nothing(self):
        self.write(STUDY, "study.yaml")
        self.serve()
        trial = self.call("POST", "/ask", {})["trial"]
        for body in (b"{", b"[]", b"\xff\xfe", b'{"trial": "x"}', b'{"trial": 1e300, "value": 1}', b'{"trial": 0}',
                     b'{"trial": 0, "value": "many"}', b'{"trial": 0, "value": 1, "values": [1]}', b'{"trial": 0, "vaule": 1}',
                     b"[" * 100000):
            self.assertIn("error", self.call("POST", "/tell", body, code=400))
        self.assertEqual(self.call("POST", "/ask", {"foo": 1}, code=400)["error"], "unknown key 'foo': this request takes none")
        for path in ("/tell", "/report"):
            self.assertIn("""unknown key 'loss': metrics by name stand in 'values', as in "values": {"loss": …}""",
                          self.call("POST", path, {"trial": 0, "loss": 0.5}, code=400)["error"])
        self.call("POST", "/tell", {"trial": 77, "value": 1}, code=409)
        self.call("GET", "/nothing", code=404)
        self.call("GET", "/ask", code=405)
        self.call("POST", "/report", {"trial": trial, "step": -1, "value": 1}, code=400)
        self.call("GET", "/best", code=404)
        self.call("POST", "/ask", {}, code=403, headers={"Host": "evil.example"})
        self.call("POST", "/tell", {"trial": trial, "value": 1})
        self.call("POST", "/tell", {"trial": trial, "value": 1}, code=409)

    def raw(self, request, half_closed=False):
        """What the server answers to these bytes, until it closes the connection."""
        with socket.create_connection(("127.0.0.1", int(self.address.rsplit(":", 1)[1])), timeout=20) as client:
            client.sendall(request)
            if half_closed:
                client.shutdown(socket.SHUT_WR)
            answer = b""
            while True:
                piece = client.recv(65536)
                if not piece:
                    return answer
                answer += piece

    def test_what_is_no_request_is_answered(self):
        self.write(STUDY, "study.yaml")
        self.serve()
        post = b"POST /tell HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        for request, status in ((b"nonsense\r\n\r\n", b"400"), (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),
                                (b"POST /tell HTTP/9.7\r\n\r\n", b"400"), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
                                (post + b"Content-Length: many\r\n\r\n", b"400"), (post + b"no colon\r\n\r\n", b"400"),
                                (post + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
                                (post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
                                (post + b"X: " + 20000 * b"x" + b"\r\n\r\n", b"431"),
                                (post + b"Content-Length: 3000000\r\n\r\n" + 3000000 * b"x", b"413")):
            head, _, body = self.raw(request).partition(b"\r\n\r\n")
            self.assertEqual(head.split(b" ")[1], status, request[:80])
            self.assertIn("error", json.loads(body), request[:80])
        for cut in (b"POST /te", post, post + b"Content-Length: 9\r\n\r\n{"):
            head, _, body = self.raw(cut, half_closed=True).partition(b"\r\n\r\n")
            self.assertEqual(head.split(b" ")[1], b"400", cut)
            self.assertIn("error", json.loads(body), cut)
        head, _, body = self.raw(b"HEAD /best HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").partition(b"\r\n\r\n")
        self.assertEqual((head.split(b" ")[1], body), (b"405", b""))
        self.assertEqual(self.call("POST", "/ask", {})["trial"], 0)

    def test_web_pages_cannot_write(self):
        self.write(STUDY, "study.yaml")
        self.serve()
        trial = self.call("POST", "/ask", {})["trial"]
        tell = {"trial": trial, "value": 1}
        own = self.address
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}, {"Origin": ""},
                        {"Origin": own.replace("http:", "https:")}, {"Sec-Fetch-Site": "cross-site"},
                        {"Sec-Fetch-Site": "same-site"}, {"Origin": own, "Sec-Fetch-Site": "cross-site"},
                        {"Origin": "https://evil.example", "Content-Type": "text/plain"},
                        {"Host": "evil.example", "Origin": "http://evil.example"}, {"Host": "127.0.0.1.evil.example"}):
            self.assertIn("error", self.call("POST", "/tell", tell, code=403, headers=headers))
            self.call("GET", "/best", code=403, headers=headers)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""):
            for path, body in (("/tell", tell), ("/ask", b"")):
                answer = self.call("POST", path, body, code=415, headers={"Content-Type": kind})
                self.assertIn("Content-Type: application/json", answer["error"])
        preflight = self.raw(b"OPTIONS /tell HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://evil.example\r\n"
                             b"Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n")
        self.assertTrue(preflight.startswith(b"HTTP/1.1 403"), preflight)
        self.assertNotIn(b"access-control", preflight.lower())
        twice = self.raw(b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n"
                         b"Content-Type: application/json\r\nContent-Length: 0\r\n\r\n")
        self.assertTrue(twice.startswith(b"HTTP/1.1 400"), twice)
        self.call("POST", "/tell", tell, headers={"Content-Type": "Application/JSON; charset=utf-8", "Sec-Fetch-Site": "none",
                                                  "Origin": own})

    def half_open(self, count):
        port = int(self.address.rsplit(":", 1)[1])
        for i in range(count):
            client = socket.create_connection(("127.0.0.1", port), timeout=20)
            self.addCleanup(client.close)
            client.sendall((b"", b"POST /te", b"POST /tell HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")[i % 3])

    def test_half_open_connections_do_not_shut_it(self):
        self.write(STUDY, "study.yaml")
        self.serve()
        self.half_open(600)
        self.assertEqual(self.call("POST", "/ask", {})["trial"], 0)
        self.call("POST", "/tell", {"trial": 0, "value": 1})

    def test_a_lack_of_descriptors_does_not_shut_it(self):
        self.write(STUDY, "study.yaml")
        self.serve(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        self.half_open(150)
        self.assertEqual(self.call("POST", "/ask", {})["trial"], 0)
        self.call("POST", "/tell", {"trial": 0, "value": 1})

    def test_several_objectives(self):
        self.write(STUDY.replace("metric: loss\nmode: min\n", "objectives: {loss: min, speed: max}\n")
                   .replace("schedule: {type: asha, grace_period: 1, max_steps: 4, reduction_factor: 2}\n", ""), "study.yaml")
        self.serve()
        self.call("GET", "/best", code=404)
        asked = [self.call("POST", "/ask", {}) for _ in range(4)]
        trial = asked[0]["trial"]
        for wrong in ({"value": 1}, {"values": [1]}, {"values": [1, 2, 3]}, {"values": {"loss": 1}}, {"values": 1}, {"values": [1, "x"]}):
            self.assertRegex(self.call("POST", "/tell", {"trial": trial, **wrong}, code=400)["error"], "objective|values|number")
        self.assertEqual(self.call("POST", "/report", {"trial": trial, "step": 0, "values": [9, 9]})["decision"], "continue")
        self.call("POST", "/report", {"trial": trial, "step": 1, "value": 9}, code=400)
        self.call("POST", "/tell", {"trial": trial, "values": [1, 1]})
        self.call("POST", "/tell", {"trial": asked[1]["trial"], "values": {"speed": "inf", "loss": 2, "seconds": 3}})
        self.call("POST", "/tell", {"trial": asked[2]["trial"], "values": [2, 0]})
        self.call("POST", "/tell", {"trial": asked[3]["trial"], "values": [None, 9]})
        front = self.call("GET", "/best")["front"]
        self.assertEqual([(t["trial"], t["values"]) for t in front], [(0, {"loss": 1, "speed": 1}), (1, {"loss": 2, "speed": "inf"})])
        self.assertEqual(front[0]["params"], asked[0]["params"])
        self.assertEqual(self.results("runs/study")[1]["metrics"]["seconds"], 3)

    def test_a_folder_that_is_moved_away_is_said_at_once(self):
        self.write(STUDY, "study.yaml")
        process = self.serve()
        for i in range(3):
            self.call("POST", "/tell", {"trial": self.call("POST", "/ask", {})["trial"], "value": i})
        (self.folder / "runs/study").rename(self.folder / "moved")
        said = ""
        while "\n" not in said:
            ready, _, _ = select.select([process.stderr], [], [], 20)
            self.assertTrue(ready, "nothing was said")
            said += os.read(process.stderr.fileno(), 65536).decode()
        self.assertIn(f"was moved to '{self.folder}/moved' while it ran", said)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1, err)
        self.assertNotIn("the study is in", err)
        self.assertEqual(len(self.results("moved")), 3)

    def test_a_closed_terminal_ends_it_unless_it_runs_under_nohup(self):
        self.write(STUDY, "study.yaml")
        process = self.serve()
        self.call("POST", "/ask", {})
        process.send_signal(signal.SIGHUP)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("--resume", err)
        process = self.serve("--resume", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        self.assertEqual(self.call("POST", "/ask", {})["trial"], 0)
        self.assertIsNone(process.poll())

    def test_nothing_told_is_lost_by_a_kill(self):
        self.write(STUDY, "study.yaml")
        process = self.serve()
        for _ in range(3):
            asked = self.call("POST", "/ask", {})
            self.call("POST", "/tell", {"trial": asked["trial"], "value": asked["params"]["x"]})
        open_trial = self.call("POST", "/ask", {})
        process.kill()
        process.communicate()
        self.serve("--resume")
        again = self.call("POST", "/ask", {})
        self.assertEqual((again["trial"], again["params"]), (open_trial["trial"], open_trial["params"]))
        self.call("POST", "/tell", {"trial": again["trial"], "value": 0})
        while True:
            asked = self.call("POST", "/ask", {})
            if asked["trial"] is None:
                break
            self.call("POST", "/tell", {"trial": asked["trial"], "value": 0})
        self.assertTrue(asked["exhausted"])
        self.assertEqual(len(self.results("runs/study")), 8)


if __name__ == "__main__":
    unittest.main()
