"""start_with, known and add: checked against the whole space, and read from files."""
import csv
import sqlite3

from support import *

SPACE = """\
name: given
trial: {command: [python3, quick.py, "{k}"]}
space:
  k: {uniform: [0, 1]}
  n: {integer: [1, 9]}
  o: {choice: [a, b]}
  m: {uniform: [0, 1], when: {o: a}}
  w: {derived: "2 * n"}
  r: {derived: "uniform(0, 1)"}
  constraints: ["k <= 0.5", "n < 9"]
metric: loss
mode: min
samples: 2
resources: {cpus: 1}
output: runs/given
"""


class Given(Case):
    def setUp(self):
        super().setUp()
        self.write("import sys\nprint('{\"loss\": %s}' % sys.argv[1])\n", "quick.py")

    def refused(self, more, *texts):
        self.write(SPACE + more)
        for command in ("check", "run"):
            _, err = self.run_command(command, "sweep.yaml", code=2)
            for text in texts:
                self.assertIn(text, err)
        self.assertFalse((self.folder / "runs").exists())

    def test_start_with_meets_constraints_and_formulas(self):
        self.refused("start_with: [{k: 0.9, n: 1, o: b, r: 0.5}]\n", "sweep.yaml:16", "k=0.9", "violates the constraint 'k <= 0.5'")
        self.refused("start_with:\n  - {k: 0.1, n: 1, o: b, r: 0.5}\n  - {k: 0.1, n: 9, o: b, r: 0.5}\n", "sweep.yaml:18", "'n < 9'")
        self.refused("start_with: [{k: 0.1, n: 2, o: b, w: 5, r: 0.5}]\n", "parameter 'w' = 5 is given, but it is derived, and 4 here")
        self.refused("start_with: [{k: 0.1, n: 2, o: b}]\n", "parameter 'r' has no value")
        self.write(SPACE + "start_with: [{k: 0.1, n: 2, o: b, r: 0.5}, {k: 0.2, n: 3, o: a, m: 0, w: 6, r: 0.5}]\n")
        self.run_command("run", "sweep.yaml", "--quiet")
        self.assertEqual([trial["params"] for trial in self.results("runs/given")],
                         [{"k": 0.1, "n": 2, "o": "b", "w": 4, "r": 0.5}, {"k": 0.2, "n": 3, "o": "a", "m": 0.0, "w": 6, "r": 0.5}])

    def test_known_meets_them_too(self):
        self.refused("known: [{params: {k: 0.9, n: 1, o: b, r: 0.5}, metrics: {loss: 0}}]\n", "sweep.yaml:16", "'k <= 0.5'")
        self.refused("known: [{params: {k: 0.1, n: 1, o: b, w: 3, r: 0.5}, metrics: {loss: 0}}]\n", "'w' = 3", "2 here")
        self.write(SPACE + "known: [{params: {k: 0, n: 1, o: b, r: 1}, metrics: {loss: 0}}]\n")
        self.run_command("run", "sweep.yaml", "--quiet")
        known = self.results("runs/given")[0]
        self.assertEqual({name: repr(value) for name, value in known["params"].items()},
                         {"k": "0.0", "n": "1", "o": "'b'", "w": "2", "r": "1.0"})

    def test_add_meets_them_too(self):
        self.write("import sys, time\nwhile True:\n    print('{\"loss\": 1}', flush=True)\n    time.sleep(0.05)\n", "quick.py")
        self.write(SPACE)
        process = self.start("run", "sweep.yaml", "--quiet")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        wait_until(lambda: (self.folder / "runs/given/trials/0/log").exists(), "a trial")
        _, err = self.run_command("add", "runs/given", "k=0.9", "n=1", "o=b", "r=0", code=2)
        self.assertIn("violates the constraint 'k <= 0.5'", err)
        _, err = self.run_command("add", "runs/given", "k=0.1", "n=1", "o=b", "r=0", "w=1", code=2)
        self.assertIn("parameter 'w' = 1 is given, but it is derived, and 2 here", err)
        out, _ = self.run_command("add", "runs/given", "k=0.1", "n=1", "o=b", "r=0")
        self.assertIn("is to try k=0.1 n=1 o=b w=2 r=0.0", out)
        self.run_command("stop", "runs/given", "--now")
        process.wait(timeout=60)

    # --- files

    def test_known_results_of_csv(self):
        rows = [[0.5 * i / 8000, i % 8 + 1, "ab"[i % 2], i / 8000 if i % 2 == 0 else "", 0.25, i, i % 3 + 1] for i in range(8000)]
        with open(self.folder / "old.csv", "w", newline="") as file:
            csv.writer(file).writerows([["k", "n", "o", "m", "r", "loss", "steps"]] + rows)
        self.write(SPACE + "known: old.csv\n")
        self.run_command("run", "sweep.yaml", "--quiet")
        results = self.results("runs/given")
        self.assertEqual(len(results), 8002)
        for row, trial in zip(rows, results):
            params = {"k": row[0], "n": row[1], "o": row[2], "w": 2 * row[1], "r": 0.25, **({} if row[3] == "" else {"m": row[3]})}
            self.assertEqual((trial["params"], trial["metrics"], trial["steps"]), (params, {"loss": row[5]}, row[6]))
        _, err = self.run_command("run", "sweep.yaml", "--quiet", "--resume")
        self.assertEqual(err, "")
        self.assertEqual(len(self.results("runs/given")), 8002)

    def test_mistakes_in_csv_name_file_and_line(self):
        head = "k,n,o,m,r,loss\n"
        good = "0.1,1,b,,0.5,3\n"

        def complain(text, *texts):
            self.write(text, "old.csv")
            self.refused("known: old.csv\n", "sweep.yaml:16", *texts)

        complain(head + good + "0.9,1,b,,0.5,3\n", "old.csv:3", "'k <= 0.5'")
        complain(head + good + '"0.1",1,"b\n",,0.5,3\n', "old.csv:3", "parameter 'o' cannot be")
        complain(head + good + "\n0.1,1,c,,0.5,3\n", "old.csv:4", "parameter 'o' cannot be c")
        complain(head + "0.1,1,b,0.3,0.5,3\n", "old.csv:2", "parameter 'm'", "condition does not hold")
        complain(head + "0.1,1,a,,0.5,3\n", "old.csv:2", "parameter 'm' has no value")
        complain(head + "0.1,1.5,b,,0.5,3\n", "old.csv:2", "parameter 'n' cannot be 1.5")
        complain(head + "0.1,1,b,,0.5,many\n", "old.csv:2", "'loss' is 'many'")
        complain(head + "0.1,1,b,,0.5,\n", "old.csv:2", "'loss' is ''")
        complain(head + "0.1,1,b,,0.5\n", "old.csv:2", "5 fields, but 6 columns")
        complain(head + '0.1,1,"b,,0.5,3\n', "old.csv:2", "quote")
        complain("k,n,o,m,r\n" + good, "old.csv:1", "no column 'loss', or 'metrics_loss'")
        complain("n,o,m,r,loss\n" + good, "old.csv:1", "no column 'k', or 'params_k'")
        complain("k;n;o;m;r;loss\n", "old.csv:1", "columns are separated by commas")
        complain("k,n,o,m,r,loss,k\n", "old.csv:1", "the column 'k' is there twice")
        complain("", "old.csv:1", "no header")
        complain(head.replace("loss", "loss,steps") + "0.1,1,b,,0.5,3,0\n", "old.csv:2", "'steps' is '0'")
        os.remove(self.folder / "old.csv")
        self.refused("known: old.csv\n", "sweep.yaml:16", "there is no file or experiment 'old.csv'")
        self.refused("start_with: [{k: 0.1, n: 1, o: b, r: 0}, .]\n", "sweep.yaml:16", "'.' is a folder without an experiment")

    def test_json_lines(self):
        lines = [{"params": {"k": 0.1, "n": 1, "o": "b", "r": 0.5}, "metrics": {"loss": 1.5, "size": 7}, "steps": 3},
                 {"params": {"k": 0.2, "n": 2, "o": "a", "m": 0.25, "w": 4, "r": 0.5}, "metrics": {"loss": 1}}]
        self.write("\n".join(map(json.dumps, lines)) + "\n\n", "old.jsonl")
        self.write('{"k": 0.3, "n": 1, "o": "b", "r": 0}\n{"params": {"k": 0.4, "n": 1, "o": "b", "r": 0}}\n', "first.jsonl")
        self.write(SPACE + "known: [old.jsonl, {params: {k: 0.5, n: 1, o: b, r: 0}, metrics: {loss: 9}}]\nstart_with: first.jsonl\n")
        self.run_command("run", "sweep.yaml", "--quiet")
        results = self.results("runs/given")
        self.assertEqual([trial["params"]["k"] for trial in results], [0.1, 0.2, 0.5, 0.3, 0.4])
        self.assertEqual([trial["steps"] for trial in results], [3, 1, 1, 1, 1])
        self.assertEqual(results[0]["metrics"], {"loss": 1.5, "size": 7})
        self.assertEqual(results[0]["params"]["w"], 2)
        shutil.rmtree(self.folder / "runs")
        for line, *texts in (("{", "no line with one JSON object"), ('{"params": {"k": 0.1}}', "has no 'metrics'"),
                             ('{"params": {"k": 0.9, "n": 1, "o": "b", "r": 0}, "metrics": {"loss": 1}}', "'k <= 0.5'"),
                             ('{"params": {"k": 0.1, "n": 1, "o": "b", "r": 0}, "metrics": {"los": 1}}', "add loss"),
                             ('{"params": {"k": 0.1, "n": 1, "o": "b", "r": 0}, "metrics": {"loss": "x"}}', "must be a number"),
                             ('{"params": {"k": 0.1, "n": 18446744073709551615, "o": "b", "r": 0}, "metrics": {"loss": 1}}', "whole numbers go"),
                             ('{"params": {}, "metrics": {"loss": 1}, "stpes": 1}', "did you mean 'steps'?"),
                             ('{"params": {"k": 0.1, "n": 1, "o": "b", "r": 0}, "metrics": {"loss": 1}, "steps": 0}', "'steps' must be 1 or more")):
            self.write(json.dumps(lines[0]) + "\n" + line + "\n", "old.jsonl")
            self.refused("known: old.jsonl\n", "sweep.yaml:16", "old.jsonl:2", *texts)

    def test_another_experiment_and_its_exports(self):
        self.write(SPACE.replace("runs/given", "runs/old").replace("samples: 2", "samples: 5"))
        self.run_command("run", "sweep.yaml", "--quiet")
        old = self.results("runs/old")
        (self.folder / "old.csv").write_text(self.run_command("results", "runs/old", "--format", "csv")[0])
        (self.folder / "old.json").write_text(self.run_command("results", "runs/old", "--format", "json")[0])
        for source in ("runs/old", "old.csv", "old.json"):
            self.write(SPACE + f"known: {source}\n")
            self.run_command("run", "sweep.yaml", "--quiet")
            new = self.results("runs/given")
            self.assertEqual([(t["params"], t["metrics"], t["steps"]) for t in new[:5]],
                             [(t["params"], t["metrics"], t["steps"]) for t in old], source)
            shutil.rmtree(self.folder / "runs/given")
            self.write(SPACE + f"start_with: {source}\n")
            self.run_command("run", "sweep.yaml", "--quiet")
            self.assertEqual([t["params"] for t in self.results("runs/given")], [t["params"] for t in old], source)
            shutil.rmtree(self.folder / "runs/given")
        # Beside the sweep's file, if the current folder has none.
        (self.folder / "elsewhere").mkdir()
        shutil.move(self.folder / "old.csv", self.folder / "elsewhere/old.csv")
        self.write(SPACE + "known: old.csv\n", "elsewhere/sweep.yaml")
        self.run_command("run", "elsewhere/sweep.yaml", "--quiet")
        self.assertEqual(len(self.results("runs/given")), 7)

    def test_tables_of_optuna_and_pandas(self):
        self.write("number,value,datetime_start,params_k,params_m,params_n,params_o,params_r,state\n"
                   "0,0.5,2026-01-01 00:00:00,0.1,0.25,3.0,a,0.5,COMPLETE\n1,0.25,2026-01-01 00:00:01,0.2,,4.0,b,0.5,PRUNED\n"
                   "2,,2026-01-01 00:00:02,0.9,,4.0,b,0.5,FAIL\n3,,2026-01-01 00:00:02,0.3,,4.0,b,0.5,RUNNING\n", "optuna.csv")
        self.write(SPACE + "known: optuna.csv\n")
        self.run_command("run", "sweep.yaml", "--quiet")
        self.assertEqual([(t["params"]["n"], t["params"].get("m"), t["metrics"]) for t in self.results("runs/given")[:2]],
                         [(3, 0.25, {"loss": 0.5}), (4, None, {"loss": 0.25})])
        self.assertEqual(len(self.results("runs/given")), 4)


if __name__ == "__main__":
    unittest.main()
