"""Parameters and notes arrive as they are written: whole numbers digit for digit, real numbers as real ones."""
import csv
import io
import urllib.request

from support import *

# Writes what it is given as it is given.
ECHO = r'''
import os, sys
with open("given.log", "a") as log:
    log.write(os.environ["HYPERTUNE_TRIAL"] + "\t" + "\t".join(sys.argv[1:]) + "\t" + os.environ["HYPERTUNE_PARAMS"] + "\n")
print('{"loss": 1}')
'''

# 2^53 + 1 is the first whole number that no double holds.
ODD, MOST, LEAST, BEYOND = "9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615"


class Values(Case):
    def setUp(self):
        super().setUp()
        self.write(ECHO, "echo.py")

    def sweep(self, space, names, more="samples: 1\n"):
        words = "".join(f', "{{{name}}}"' for name in names)
        self.write(f"name: echo\ntrial:\n  command: [python3, echo.py{words}]\nspace:\n{space}metric: loss\nmode: min\n"
                   f"resources: {{cpus: 1}}\nconcurrency: 1\noutput: runs/echo\n{more}")

    def given(self):
        """By trial: the words of its command, and the text of HYPERTUNE_PARAMS."""
        rows = [line.split("\t") for line in (self.folder / "given.log").read_text().splitlines()]
        return {int(row[0]): (row[1:-1], row[-1]) for row in rows}

    def test_whole_numbers_arrive_digit_for_digit(self):
        numbers = [MOST, ODD, LEAST, str(int(ODD) - 1), "2.5"]
        self.sweep(f"  a: {{grid: [{', '.join(numbers)}]}}\n  b: {ODD}\n  c: {{choice: [{ODD}]}}\n", "abc", "")
        self.run_command("run", "sweep.yaml", "--quiet")
        for trial, (words, params) in self.given().items():
            self.assertEqual(words, [numbers[trial], ODD, ODD])
            self.assertEqual(params, f'{{"a": {numbers[trial]}, "b": {ODD}, "c": {ODD}}}')
        self.assertEqual(len(self.given()), 5)
        self.run_command("note", "runs/echo", "0", f"seed={ODD}", f"text='{BEYOND}'")
        self.run_command("note", "runs/echo", f"most={MOST}")
        self.run_command("run", "sweep.yaml", "--quiet", "--resume", "--set", f"start_with=[{{a: {ODD}, b: {ODD}, c: {ODD}}}]",
                         "--set", f"attributes={{least: {LEAST}}}")
        results = self.results("runs/echo")
        self.assertEqual([str(trial["params"]["a"]) for trial in results], numbers)  # none is made for start_with: it is there
        self.assertEqual(results[0]["attributes"], {"seed": int(ODD), "text": BEYOND})
        rows = list(csv.DictReader(io.StringIO(self.run_command("results", "runs/echo", "--format", "csv")[0])))
        self.assertEqual([row["params_a"] for row in rows], numbers)
        self.assertEqual(rows[0]["attributes_seed"], ODD)
        status = json.loads(self.run_command("status", "runs/echo", "--format", "json")[0])
        self.assertEqual(status["attributes"], {"most": int(MOST), "least": int(LEAST)})
        self.assertIn(numbers[0], self.run_command("results", "runs/echo")[0])
        _, err = self.run_command("note", "runs/echo", f"seed={BEYOND}", code=2)
        self.assertIn(f"seed={BEYOND}: whole numbers go from {LEAST} to {MOST}", err)

    def test_a_number_that_would_change_is_refused(self):
        for space in (f"{{choice: [1, {BEYOND}]}}", BEYOND, f"{{grid: [{BEYOND}]}}", f"{{constant: -{BEYOND}}}"):
            self.sweep(f"  a: {space}\n", "a")
            _, err = self.run_command("run", "sweep.yaml", code=2)
            self.assertIn(f"{BEYOND}: whole numbers go from {LEAST} to {MOST}", err)
            self.assertIn("sweep.yaml:5", err)
        self.sweep("  a: {choice: [1, 2]}\n", "a")
        _, err = self.run_command("run", "sweep.yaml", "--set", f"space.a={BEYOND}", code=2)
        self.assertIn(f"--set space.a={BEYOND}: 'space.a' is {BEYOND}", err)
        for space in (f"{{integer: [0, {ODD}]}}", f"{{log_int: [1, {MOST}]}}"):
            self.sweep(f"  a: {space}\n", "a")
            self.assertIn(f"±2^53, not in {space[space.index(chr(91)):-1]}", self.run_command("check", "sweep.yaml", code=2)[1])
        self.assertFalse((self.folder / "runs").exists())

    def test_a_seed_of_64_bits(self):
        self.sweep("  a: {choice: [1, 2]}\n", "a", f"samples: 1\nseed: {BEYOND}\n")
        self.run_command("run", "sweep.yaml", "--quiet")
        self.write((self.folder / "sweep.yaml").read_text().replace(BEYOND, "18446744073709551616"))
        self.assertIn("'seed' must be from 0 to", self.run_command("check", "sweep.yaml", code=2)[1])

    def test_environment_is_given_as_it_is_written(self):
        self.write("import os\nprint(os.environ['VERSION'], os.environ['SEED'], os.environ['FLAG'])\nprint('{\"loss\": 1}')\n", "echo.py")
        self.sweep("  a: {choice: [1]}\n", "a")
        text = (self.folder / "sweep.yaml").read_text().replace("space:\n", f"  environment: {{VERSION: 3.10, SEED: {BEYOND}, FLAG: True}}\nspace:\n")
        self.write(text)
        self.run_command("run", "sweep.yaml", "--quiet")
        self.assertIn(f"3.10 {BEYOND} true\n", (self.folder / "runs/echo/trials/0/log").read_text())

    def test_real_numbers_arrive_as_real_ones(self):
        space = ("  u: {uniform: [1, 1.0]}\n  q: {quantized: [2, 2, 1]}\n  n: {integer: [3, 3]}\n  c: {grid: [1.0]}\n"
                 "  m: {grid: [1.0, 0.5, 1e3]}\n  k: 4.0\n  w: {derived: 2 * n}\n  h: {derived: n / 3}\n")
        self.sweep(space, "uqncmkwh", "")
        self.run_command("run", "sweep.yaml", "--quiet")
        for trial, (words, params) in self.given().items():
            m = ["1.0", "0.5", "1000.0"][trial]
            self.assertEqual(words, ["1.0", "2.0", "3", "1.0", m, "4.0", "6", "1.0"])
            read = json.loads(params)
            self.assertEqual({name: repr(value) for name, value in read.items()},
                             dict(zip("uqncmkwh", ["1.0", "2.0", "3", "1.0", m, "4.0", "6", "1.0"])))
            self.assertEqual({name: type(value) for name, value in self.results("runs/echo")[trial]["params"].items()},
                             {name: type(value) for name, value in read.items()})
        best = self.run_command("best", "runs/echo", "--format", "json")[0]
        self.assertIn('"m": 1.0', best)
        self.assertIn('"n": 3,', best)
        exported = json.loads(self.run_command("results", "runs/echo", "--format", "json")[0])
        self.assertIs(type(exported[0]["params"]["u"]), float)
        self.assertNotIn("1.0 ", self.run_command("results", "runs/echo")[0].replace("loss=1", ""))  # the table stays short

    def test_the_study_server_gives_and_takes_them_unchanged(self):
        self.write(f"name: s\nspace:\n  a: {{choice: [{ODD}]}}\n  u: {{uniform: [1, 1.0]}}\n  c: {{choice: [1.0, 0.5]}}\n  n: {{integer: [2, 2]}}\n"
                   "metric: loss\nmode: min\nsamples: 3\noutput: runs/s\n"
                   f"start_with: [{{a: {ODD}, u: 1, c: 1, n: 2}}]\n", "study.yaml")
        process = self.start("study", "study.yaml")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        address = process.stdout.readline().strip()

        def call(path, body, code=200):
            request = urllib.request.Request(address + path, data=body.encode() if body is not None else None,
                                             headers={"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=20) as response:
                    return response.read().decode()
            except urllib.error.HTTPError as error:
                self.assertEqual(error.code, code)
                return error.read().decode()

        self.assertEqual(call("/ask", "{}"), f'{{"trial": 0, "params": {{"a": {ODD}, "u": 1.0, "c": 1.0, "n": 2}}, "step": 0}}')
        call("/tell", f'{{"trial": 0, "value": 4, "attributes": {{"seed": {ODD}, "least": {LEAST}, "big": 1e20, "one": 1.0}}}}')
        self.assertEqual(json.loads(call("/best", None)), {"trial": 0, "params": {"a": int(ODD), "u": 1.0, "c": 1.0, "n": 2}, "value": 4.0, "step": 0})
        for number in (BEYOND, "9223372036854775808", "-9223372036854775809", "1" + "0" * 30):
            answer = call("/note", f'{{"attributes": {{"text": "{number}", "x": {number}}}}}', 400)
            self.assertIn("the attribute 'x' is beyond the whole numbers", answer)
        call("/note", '{"attributes": {"text": "100000000000000000000", "x": 1e20}}')
        notes = self.results("runs/s")[0]["attributes"]
        self.assertEqual({name: repr(value) for name, value in notes.items()},
                         {"seed": ODD, "least": LEAST, "big": "1e+20", "one": "1.0"})
        self.run_command("add", "runs/s", f"a={ODD}", "u=1", "c=0.5", "n=2")
        self.assertIn(f'"a": {ODD}, "u": 1.0, "c": 0.5', call("/ask", "{}"))
        self.assertIn(f"a={BEYOND}: whole numbers go", self.run_command("add", "runs/s", f"a={BEYOND}", "u=1", "c=0.5", "n=2", code=2)[1])


if __name__ == "__main__":
    unittest.main()
