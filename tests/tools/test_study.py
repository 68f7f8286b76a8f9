"""hypertune study: ask/tell over HTTP."""
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
schedule: {type: asha, grace: 1, max: 4, reduction: 2}
output: runs/study
"""


class Study(Case):
    def serve(self, *arguments):
        process = self.start("study", "study.yaml", *arguments)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.address = process.stdout.readline().strip()
        self.assertTrue(self.address.startswith("http://127.0.0.1:"), self.address or process.stderr.read())
        return process

    def call(self, method, path, body=None, code=200, headers={}):
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data=data, method=method, headers=dict(headers))
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        self.assertEqual(status, code, text)
        return json.loads(text)

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
        self.call("POST", "/tell", {"trial": 77, "value": 1}, code=409)
        self.call("GET", "/nothing", code=404)
        self.call("GET", "/ask", code=405)
        self.call("POST", "/report", {"trial": trial, "step": -1, "value": 1}, code=400)
        self.call("GET", "/best", code=404)
        self.call("POST", "/ask", {}, code=403, headers={"Host": "evil.example"})
        self.call("POST", "/tell", {"trial": trial, "value": 1})
        self.call("POST", "/tell", {"trial": trial, "value": 1}, code=409)

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
