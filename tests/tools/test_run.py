"""hypertune run, results, best, status, export."""
import csv
import io

import re
import shutil
import sqlite3

from support import *


class Run(Case):
    def test_a_program_that_prints_nothing_is_tuned_by_what_it_uses(self):
        self.write('trial: {command: [sleep, "{t}"], measure: [duration, cpu_time, peak_memory]}\n'
                   "space: {t: {grid: [0.3, 0.1]}}\nmetric: duration\nmode: min\n"
                   "constraints: {peak_memory: {at_most: 1.0e9}}\noutput: runs/sleep\n")
        self.run_command("run", "sweep.yaml", "--plain")
        results = self.results("runs/sleep")
        self.assertEqual([trial["state"] for trial in results], ["completed"] * 2)
        for trial in results:
            self.assertEqual(set(trial["metrics"]), {"duration", "cpu_time", "peak_memory"})
            self.assertGreaterEqual(trial["metrics"]["duration"], trial["params"]["t"])
            self.assertGreater(trial["metrics"]["peak_memory"], 0)
            self.assertEqual((trial["steps"], trial["feasible"]), (1, True))
            self.assertEqual(trial["best"], {"step": 0, "duration": trial["metrics"]["duration"]})

    def test_a_sweep_from_start_to_results(self):
        out, _ = self.run_command("run", self.write(SWEEP))
        self.assertIn("accuracy", out)
        self.assertIn("best:", out)
        results = self.results()
        self.assertEqual(len(results), 6)
        self.assertEqual([r["trial"] for r in results], list(range(6)))
        for r in results:
            self.assertIn(r["state"], ("completed", "stopped"))
            self.assertEqual(set(r["params"]), {"lr", "hidden"})
            self.assertGreaterEqual(r["steps"], 1)
            self.assertEqual(r["failures"], 0)
            self.assertIn("step", r["best"])
            self.assertIn("accuracy", r["best"])
        best = json.loads(self.run_command("best", "runs/digits", "--format", "json")[0])
        self.assertEqual(best["best"]["accuracy"], max(r["best"]["accuracy"] for r in results))
        self.assertTrue((self.folder / "runs/digits/best/checkpoint/state.json").exists())
        self.assertTrue((self.folder / "runs/digits/trials/0/progress.csv").read_text().startswith("step,time,accuracy"))
        self.assertIn("ended", self.run_command("status", "runs/digits")[0])
        rows = list(csv.DictReader(io.StringIO(self.run_command("results", "runs/digits", "--format", "csv")[0])))
        self.assertEqual(len(rows), 6)
        exported = json.loads(self.run_command("export", "runs/digits", "--format", "json")[0])
        self.assertEqual(len(exported), 6)
        self.assert_each_report_once()
        self.assert_nothing_left()

    def test_placeholders_and_regular_expressions(self):
        self.write("import sys\nprint('epoch 1'); print('acc=%s' % (float(sys.argv[2]) / 2), flush=True)\n", "plain.py")
        sweep = SWEEP.replace("[python3, train.py]", '[python3, plain.py, --lr, "{lr}"]\n  metrics: {accuracy: "acc=([0-9.e-]+)"}')
        self.run_command("run", self.write(sweep))
        for r in self.results():
            self.assertAlmostEqual(r["metrics"]["accuracy"], r["params"]["lr"] / 2, places=12)

    def test_metrics_that_were_never_read_are_named_once(self):
        self.write("import sys\nprint('size: 91%', file=sys.stderr, flush=True)\nprint('share: 0.91%')\n"
                   "print('acc=0.5', flush=True)\n", "plain.py")
        metrics = ('  metrics: {accuracy: "acc=([0-9.]+)", share: "share: ([0-9.]+)", size: "size: ([-+0-9.eE]+)", '
                   'gone: "gone: (.+)"}')
        sweep = SWEEP.replace("[python3, train.py]", "[python3, plain.py]\n" + metrics)
        out, _ = self.run_command("run", self.write(sweep), "--set", "samples=3")
        out = " ".join(out.split())
        self.assertEqual(out.count("was never read"), 3)
        self.assertIn("'gone' was never read: its expression matches no line that was printed; 'share' was never read: "
                      "the first line refused is 'share: 0.91%': '0.91%' is no number: it is a percentage", out)
        self.assertIn("'size' was never read: the first line refused is 'size: 91%': '91%' is no number", out)
        self.run_command("run", self.write(sweep.replace("share: ([0-9.]+)", "share: ([0-9.]+)%")
                                           .replace(', gone: "gone: (.+)"', "")
                                           .replace('"size: ([-+0-9.eE]+)"', '{match: "size: ([0-9.]+)", unit: percent}')),
                         "--set", "samples=1", "--output", "again")
        self.assertEqual(self.results("again")[0]["metrics"], {"accuracy": 0.5, "share": 0.91, "size": 91})

    def test_units_that_differ_between_trials_are_said(self):
        """The slowest trial would be the best one: it alone says its time in seconds."""
        self.write("import sys\nn = int(sys.argv[1]); print('took', '1.05 s' if n > 2 else f'{50 + n} ms', flush=True)\n", "plain.py")
        sweep = ("name: units\nspace: {n: {grid: [1, 2, 3]}}\nsamples: 1\nmetric: latency\nmode: min\nconcurrency: 1\n"
                 "trial:\n  command: [python3, plain.py, \"{n}\"]\n  metrics: {latency: \"took ([0-9.]+)\"}\n")
        said = (r"unit of latency: ms in trial 0, s in trial 2: values in different units cannot be compared; .*name it: "
                r"metrics: \{latency: \{match: …, unit: seconds\}\}")
        out, _ = self.run_command("run", self.write(sweep))
        self.assertRegex(" ".join(out.split()), said)
        out, _ = self.run_command("status", "runs/units")
        self.assertRegex(out, said)
        out, _ = self.run_command("run", self.write(sweep.replace('"took ([0-9.]+)"', '{match: "took ([0-9.]+)", unit: seconds}')),
                                  "--output", "named")
        self.assertNotIn("unit of", out)
        self.assertEqual([round(r["metrics"]["latency"], 9) for r in self.results("named")], [0.051, 0.052, 1.05])

    def test_a_metric_called_time_stands_apart_and_one_called_step_is_refused(self):
        self.write('import json, time\nfor i in range(3): print(json.dumps({"step": i, "time": i / 2, "accuracy": i}), flush=True)\n', "train.py")
        self.run_command("run", self.write(SWEEP.replace("schedule: {type: asha, grace_period: 1, max_steps: 9, reduction_factor: 3}\n", "")), "--set", "samples=1")
        self.assertEqual(self.results(history=True)[0]["history"],
                         [{"step": i, "time": i / 2, "accuracy": i} for i in range(3)])
        for place in ("metric: step", "metric: accuracy\nconstraints: {step: {at_most: 3}}"):
            _, err = self.run_command("run", self.write(SWEEP.replace("metric: accuracy", place), "bad.yaml"), code=2)
            self.assertRegex(err, r"bad.yaml:\d+: no metric can be called 'step'.*epoch")

    def test_a_report_that_is_refused_is_named_by_the_trial_s_cause(self):
        self.write('print(\'{"step": -1, "accuracy": 1}\', flush=True)\n', "train.py")
        self.run_command("run", self.write(SWEEP), "--set", "samples=1", code=1)
        self.assertIn("'{\"step\": -1, \"accuracy\": 1}' is not one: 'step' is -1", self.results()[0]["cause"])
        self.assertIn("not taken as a report", (self.folder / "runs/digits/trials/0/log").read_text())

    def test_a_trial_s_log_is_bounded(self):
        self.write("for i in range(20_000): print('line', i, 'x' * 1000)\nprint('{\"accuracy\": 1}')\nprint('the end', flush=True)\n", "train.py")
        for more, most in (("", 16 << 20), ("log_limit: 1MB\n", 1_000_000)):
            shutil.rmtree(self.folder / "runs", ignore_errors=True)
            self.run_command("run", self.write(SWEEP + more), "--set", "samples=1")
            log = (self.folder / "runs/digits/trials/0/log").read_text()
            self.assertLessEqual(len(log), most)
            self.assertTrue(log.startswith("line 0 xxx"))
            self.assertTrue(log.endswith("the end\n"))
            self.assertRegex(log, r"\[hypertune: \d+ bytes of this log are left out here, log_limit is \d+\]\n")
        _, err = self.run_command("run", self.write(SWEEP + "log_limit: 10\n", "bad.yaml"), code=2)
        self.assertRegex(err, r"bad.yaml:\d+: .*log limit is 10 bytes")

    def test_settings_printed_as_json_are_no_report(self):
        self.write("import os\nprint(os.environ['HYPERTUNE_PARAMS'])\nprint('{\"accuracy\": 1}')\n", "prints.py")
        self.run_command("run", self.write(SWEEP.replace("train.py", "prints.py")))
        for r in self.results():
            self.assertEqual((r["steps"], r["metrics"]), (1, {"accuracy": 1}))

    def test_a_command_finds_its_slot_in_its_environment(self):
        self.write("import os\nprint('slot', os.environ['OMP_NUM_THREADS'], os.environ['CUDA_VISIBLE_DEVICES'], "
                   "len(os.sched_getaffinity(0)))\nprint('{\"accuracy\": 1}')\n", "slot.py")
        cores = len(os.sched_getaffinity(0))
        for isolation in ("process", "thread"):
            self.environment["CUDA_VISIBLE_DEVICES"] = "5,7"
            text = SWEEP.replace("train.py", "slot.py").replace("cpus: 1", "cpus: %d, gpus: 1" % cores) + "executor: {type: local, isolation: %s}\n" % isolation
            self.run_command("run", self.write(text), "--output", isolation)
            for log in (self.folder / isolation / "trials").glob("*/log"):
                self.assertIn(log.read_text().strip(), ("slot %d 5 %d" % (cores, cores), "slot %d 7 %d" % (cores, cores)))
            text = text.replace("cpus: %d" % cores, "cpus: 1")
            self.run_command("run", self.write(text), "--output", isolation + "-1")
            for log in (self.folder / (isolation + "-1") / "trials").glob("*/log"):
                self.assertIn(log.read_text().strip(), ("slot 1 5 1", "slot 1 7 1"))

    def test_a_resume_goes_on_to_where_the_sweep_was_extended(self):
        self.environment.update(PAUSE="0.02")
        self.run_command("run", self.write(SWEEP))
        process = self.start("run", "sweep.yaml", "--resume", "--samples", "+20")
        wait_until(lambda: len(self.results()) > 8, "more trials")
        process.kill()
        process.communicate()
        self.environment.update(PAUSE="0")
        self.run_command("run", "sweep.yaml", "--resume")
        self.assertEqual(len(self.results()), 26)

    def test_a_grid_under_constraints_tries_each_combination_once(self):
        text = SWEEP.replace("hidden: {log_int: [16, 512]}", "hidden: {grid: [1, 2, 3]}\n  depth: {grid: [1, 2, 3]}\n  constraints: hidden < depth")
        text = text.replace("{log_uniform: [1.0e-4, 1.0e-1]}", "0.01")
        self.run_command("run", self.write(text), "--set", "samples=1")
        self.assertEqual(len({str(r["params"]) for r in self.results()}), 3)
        self.assertEqual(len(self.results()), 3)
        self.run_command("run", "sweep.yaml", "--resume", "--samples", "+1")
        self.assertEqual(len(self.results()), 6)

    def test_the_schedule_of_a_population_is_exported_and_replayed(self):
        text = SWEEP.replace("{type: asha, grace_period: 1, max_steps: 9, reduction_factor: 3}", "{type: pbt, perturbation_interval: 2, max_steps: 8, quantile_fraction: 0.5}")
        self.run_command("run", self.write(text))
        best = json.loads(self.run_command("best", "runs/digits", "--format", "json")[0])
        schedule = json.loads(self.run_command("export", "runs/digits", "--schedule")[0])
        self.assertEqual(schedule[0]["from_step"], 0)
        starts = [entry["from_step"] for entry in schedule]
        self.assertEqual(starts, sorted(set(starts)))
        for entry in schedule:
            self.assertEqual(set(entry["params"]), {"lr", "hidden"})
        last = json.loads(self.run_command("export", "runs/digits", "--schedule", "--trial", str(best["trial"]))[0])
        self.assertEqual(last[: len(schedule)], schedule)
        self.run_command("export", "runs/digits", "--schedule", "--output", "best.json")
        self.assertEqual(json.loads((self.folder / "best.json").read_text()), schedule)
        self.run_command("export", "runs/digits", "--schedule", "--trial", "99", code=2)

        again = SWEEP.replace("{type: asha, grace_period: 1, max_steps: 9, reduction_factor: 3}", "{type: replay, from: best.json, max_steps: 8}")
        self.run_command("run", self.write(again.replace("samples: 6\n", ""), "again.yaml"), "--output", "runs/again")
        (trial,) = self.results("runs/again")
        self.assertEqual((trial["state"], trial["steps"]), ("completed", 8))
        self.assertEqual(trial["params"], schedule[-1]["params"])
        folder = again.replace("from: best.json", "from: runs/digits")
        self.run_command("run", self.write(folder, "folder.yaml"), "--output", "runs/folder", "--set", "samples=2")
        self.assertEqual([t["params"] for t in self.results("runs/folder")], [schedule[-1]["params"]] * 2)

    def test_several_objectives(self):
        self.write("import json, os\nx = json.loads(os.environ['HYPERTUNE_PARAMS'])['lr']\n"
                   "print(json.dumps({'cost': x, 'gain': x, 'loss': 1 - x if x < 0.05 else 2}))\n", "both.py")
        text = SWEEP.replace("train.py", "both.py").replace("metric: accuracy\nmode: max", "objectives: {cost: min, loss: min}")
        _, err = self.run_command("run", self.write(text), code=2)
        self.assertIn("'asha' reads one objective only", err)
        self.assertIn("mo_asha", err)
        _, err = self.run_command("run", "sweep.yaml", "--set", "schedule=fifo", "--set", "search=cma_es", code=2)
        self.assertIn("nsga2", err)
        out, _ = self.run_command("run", "sweep.yaml", "--set", "schedule=fifo")
        self.assertIn("best, beaten by no other trial in all objectives", out)
        front = json.loads(self.run_command("results", "runs/digits", "--pareto", "--format", "json")[0])
        self.assertTrue(front)
        table = self.run_command("results", "runs/digits", "--pareto")[0].splitlines()
        self.assertEqual(len(table), len(front))
        for line in table:
            self.assertIn("cost=", line)
            self.assertIn("loss=", line)
        # What is best is the front, wherever it is said.
        self.assertEqual(self.run_command("best", "runs/digits")[0].splitlines(), table)
        self.assertEqual(json.loads(self.run_command("best", "runs/digits", "--format", "json")[0]), front)
        self.assertEqual(json.loads((self.folder / "runs/digits/best/result.json").read_text()), front)
        status = self.run_command("status", "runs/digits")[0]
        for line in table[:10]:
            self.assertIn(line, status)
        self.assertEqual(json.loads(self.run_command("status", "runs/digits", "--format", "json")[0])["front"], front)

    def test_results_whose_checkpoints_were_removed(self):
        self.run_command("run", self.write(SWEEP))
        shutil.rmtree(self.folder / "runs/digits/trials")
        self.run_command("run", "sweep.yaml", "--resume")
        self.assertTrue((self.folder / "runs/digits/best/result.json").exists())

    def test_a_damaged_journal_is_bad_input(self):
        (self.folder / "runs/digits").mkdir(parents=True)
        (self.folder / "runs/digits/experiment.db").write_bytes(b"x" * 10000)
        for command in ("status", "results", "best", "export"):
            self.run_command(command, "runs/digits", code=2)
        self.run_command("run", self.write(SWEEP), "--resume", code=2)

    def test_what_is_no_file_in_the_place_of_a_journal_is_bad_input(self):
        journal = self.folder / "runs/digits/experiment.db"
        journal.mkdir(parents=True)
        for make in (lambda: None, lambda: (journal.rmdir(), os.mkfifo(journal))):
            make()
            for arguments in (["status", "runs/digits"], ["results", "runs/digits"], ["run", self.write(SWEEP)]):
                _, err = self.run_command(*arguments, code=2)
                self.assertEqual(err.count("\n"), 1, (arguments, err))
                self.assertIn("experiment.db' is a", err)

    def test_status_says_why_trials_wait(self):
        self.environment.update(PAUSE="0.05")
        process = self.start("run", self.write(SWEEP))
        wait_until(lambda: len(self.steps_run()) > 3, "steps")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertNotIn("failed", err)  # an interruption is no failure
        self.assertRegex(self.run_command("status", "runs/digits")[0], "trial [0-9]+ is pending: .*--resume")

    def test_more_samples_of_a_finished_sweep(self):
        self.run_command("run", self.write(SWEEP))
        _, err = self.run_command("run", "sweep.yaml", code=2)
        self.assertIn("--resume", err)
        self.run_command("run", "sweep.yaml", "--resume", "--samples", "+3")
        self.assertEqual(len(self.results()), 9)
        self.assert_each_report_once()

    def test_values_set_from_the_command_line(self):
        self.run_command("run", self.write(SWEEP), "--set", "samples=3", "--set", "schedule.max_steps=2", "--set", "output=elsewhere")
        results = self.results("elsewhere")
        self.assertEqual(len(results), 3)
        self.assertLessEqual(max(r["steps"] for r in results), 2)

    def test_stop_conditions(self):
        self.run_command("run", self.write(SWEEP + "stop: {accuracy: 0.2}\n"), "--set", "samples=1000")
        results = self.results()
        self.assertLess(len(results), 100)
        self.assertGreaterEqual(max(r["best"]["accuracy"] for r in results if r["best"]), 0.2)
        self.assertTrue(all(r["state"] in ("completed", "stopped", "failed") for r in results))

    def test_promotion_pauses_commands_and_lets_them_go_on(self):
        self.run_command("run", self.write(SWEEP.replace("reduction_factor: 3}", "reduction_factor: 3, promotion: true}")), "--set", "samples=12")
        results = self.results()
        self.assertEqual(len(results), 12)
        self.assertTrue(any(r["state"] == "completed" and r["steps"] == 9 for r in results), results)
        self.assert_each_report_once()
        self.assert_nothing_left()


class TheEnd(Case):
    def test_what_the_table_leaves_out_is_said(self):
        self.write("import os, sys\ntrial = int(os.environ['HYPERTUNE_TRIAL'])\n"
                   "if trial % 5 == 0: sys.exit('no data' if trial else 'no disk')\nprint('{\"accuracy\": 0.5}')\n", "train.py")
        sweep = SWEEP.replace("samples: 6", "samples: 26")
        out, _ = self.run_command("run", self.write(sweep), "--quiet")
        self.assertIn("\n… 6 more: hypertune results runs/digits\n"
                      "6 failed: the command exited with code 1: no data (5), the command exited with code 1: no disk (1)\n", out)
        self.write("import os, sys\nsys.exit('no data in row ' + os.environ['HYPERTUNE_TRIAL'])\n", "train.py")
        out, _ = self.run_command("run", self.write(SWEEP), "--quiet", "--output", "runs/rows", code=1)
        self.assertIn("\n6 failed: the command exited with code 1: no data in row 0 (6, with different values)\n", out)
        self.write("import os, sys\ntrial = int(os.environ['HYPERTUNE_TRIAL'])\n"
                   "if trial % 5 == 0: sys.exit('no data' if trial else 'no disk')\nprint('{\"accuracy\": 0.5}')\n", "train.py")
        out, _ = self.run_command("run", self.write(SWEEP), "--quiet", "--output", "runs/six")
        self.assertNotIn("more: hypertune", out)
        self.assertIn("\n2 failed: ", out)


class Mistakes(Case):
    def test_options_of_results_that_mean_nothing(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        _, err = self.run_command("results", "runs/digits", "--history", code=2)
        self.assertIn("--history goes with --format json", err)
        _, err = self.run_command("results", "runs/digits", "--rows", "-1", code=2)
        self.assertIn("--rows: it takes a whole number from 0, not '-1' (", err)

    def complain(self, text, *parts, code=2):
        _, err = self.run_command("run", self.write(text), code=code)
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        for part in parts:
            self.assertIn(part, err)
        self.assertFalse((self.folder / "runs").exists(), "bad input left something behind")

    def test_a_misspelt_key_names_its_line_and_what_was_meant(self):
        self.complain(SWEEP.replace("samples: 6", "sampels: 6"), "sweep.yaml:9", "sampels", "samples")

    def test_a_journal_without_a_column(self):
        self.run_command("run", self.write(SWEEP), "--quiet")
        db = sqlite3.connect(self.folder / "runs/digits/experiment.db")
        self.addCleanup(db.close)
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        column = {name: [c for _, c, *_ in db.execute(f"PRAGMA table_info({name})")] for name in tables}
        (table,) = [name for name in tables if "attempt" in column[name]]
        for (view,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
            db.execute(f"DROP VIEW {view}")
        db.execute(f"ALTER TABLE {table} RENAME COLUMN attempt TO other")
        db.commit()
        _, err = self.run_command("results", "runs/digits", code=2)
        self.assertIn("lacks what a hypertune journal has (no such column: attempt)", err)
        self.assertNotIn("nothing recorded before was lost", err)

    def test_the_status_of_a_sweep(self):
        _, err = self.run_command("status", self.write(SWEEP), code=2)
        self.assertIn("'sweep.yaml' is a sweep: name the folder of its experiment, such as runs/digits", err)
        self.assertLess(len(err), 150)

    def test_a_space_without_parameters(self):
        space = "  lr: {log_uniform: [1.0e-4, 1.0e-1]}\n  hidden: {log_int: [16, 512]}\n"
        for nothing in ("", "  {}\n", "  constraints: []\n"):
            self.complain(SWEEP.replace(space, nothing), "'space' is empty")

    def test_no_number_of_trials(self):
        sweep = SWEEP.replace("samples: 6\n", "")
        self.complain(sweep, "sweep.yaml:1: how many trials? add 'samples: 50'", "--samples")
        self.run_command("run", self.write(sweep), "--quiet", "--samples", "1")

    def test_other_mistakes(self):
        self.complain(SWEEP.replace("log_uniform: [1.0e-4, 1.0e-1]", "log_uniform: [1.0e-1, 1.0e-4]"), "sweep.yaml:5", "lr")
        self.complain(SWEEP.replace("log_uniform: [1.0e-4", "log_uniform: [0"), "lr")
        self.complain(SWEEP.replace("type: asha", "type: asah"), "sweep.yaml:11", "asha")
        self.complain(SWEEP.replace("mode: max", "mode: best"), "sweep.yaml:8")
        self.complain(SWEEP.replace("samples: 6", "samples: many"), "sweep.yaml:9")
        self.complain(SWEEP.replace("samples: 6", "samples: [6"), "sweep.yaml")
        self.complain(SWEEP + "stop: {accuracie: 0.9}\n", "accuracy")
        self.complain(SWEEP + "executor: {type: mainframe}\n", "mainframe")
        self.complain(SWEEP.replace("train.py]", 'train.py, "{learning_rate}"]'), "learning_rate")
        self.complain(SWEEP.replace("cpus: 1", "cpus: 10000"), "10000")
        self.complain(SWEEP.replace("cpus: 1", "memory: 900TB"), "memory")
        self.complain(SWEEP.replace("[python3, train.py]", "[pithon3, train.py]"), "pithon3")
        self.complain(SWEEP.replace("[python3, train.py]", "[./train.py]"), "train.py", "chmod")
        self.complain(SWEEP.replace("[python3, train.py]", "[/tmp]"), "'/tmp' is a folder, no program")
        self.complain(SWEEP.replace("[python3, train.py]", "python3 train.py"), "[python3, train.py]")

    def test_a_metric_that_no_expression_finds(self):
        sweep = SWEEP.replace("train.py]", 'train.py]\n  metrics: {acuracy: "acc=(.*)"}')
        self.complain(sweep, "sweep.yaml:8: 'trial.metrics' has no expression for 'accuracy'", "did you mean 'acuracy'")
        sweep = sweep.replace("acuracy", "accuracy")
        self.complain(sweep + "constraints: {latency: {at_most: 3}}\n", "sweep.yaml:16", "no expression for 'latency'")
        self.complain(sweep.replace("metric: accuracy\nmode: max", "objectives: {accuracy: max, size: min}"), "sweep.yaml:8",
                      "no expression for 'size'")

    def test_mistakes_in_entries_and_expressions_name_their_line(self):
        known = SWEEP + "known:\n  - {params: {lr: 0.01, hidden: 20}, metrics: {accuracy: 0.5}}\n  - "
        self.complain(known + "{params: {lr: 7, hidden: 20}, metrics: {accuracy: 0.5}}\n", "sweep.yaml:17", "lr")
        self.complain(known + "{params: {lr: 0.01, hidden: 20}, metrics: {accuracie: 0.5}}\n", "sweep.yaml:17", "accuracy")
        self.complain(known + "{params: {lr: 0.01, hidden: 20}, metrics: {accuracy: 0.5}, steps: 0}\n", "sweep.yaml:17", "steps")
        self.complain(SWEEP + "failures:\n  log:\n  - {match: fine, do: no_retry}\n  - {match: 'a(', do: no_retry}\n",
                      "sweep.yaml:18", "a(")
        self.complain(SWEEP.replace("train.py]", 'train.py]\n  metrics:\n    accuracy: "acc=[0-9]+"'), "sweep.yaml:5", "group")
        for word in ("{learning_rate}", "{lr", "lr}"):
            self.complain(SWEEP.replace("[python3, train.py]", f'\n  - python3\n  - train.py\n  - "{word}"'), "sweep.yaml:6", "lr")

    def test_nothing_of_a_trial_or_a_file_controls_the_terminal(self):
        sweep = SWEEP.replace("space:\n", 'space:\n  kind: {choice: ["\\e[31mred\\u202e", "\\e[32mgreen"]}\n')
        sweep = sweep.replace("[python3, train.py]", "[python3, rude.py]").replace("samples: 6", "samples: 4")
        self.write("import os, sys\n"
                   "print('\\x1b]0;title\\x07', file=sys.stderr)\n"
                   "if os.environ['HYPERTUNE_TRIAL'] == '1': sys.exit('\\x1b[2Jgone')\n"
                   "print('{\"accuracy\": 0.5}')\n", "rude.py")
        shown = "".join(self.run_command("run", self.write(sweep + "failures: {max_retries: 0}\n")))
        for command in ("status", "best", "results"):
            shown += "".join(self.run_command(command, "runs/digits"))
        shown += "".join(self.run_command("run", self.write('"\\e[31mnonsense": 1\n', "bad.yaml"), code=2))
        self.assertIn("?[31mred", shown)
        self.assertIn(": gone", shown)  # the sequence before it was taken away
        for character in "\x1b\x07\u202e":
            self.assertNotIn(character, shown)

    def test_results_that_cannot_be_written_are_a_failure(self):
        self.run_command("run", self.write(SWEEP.replace("samples: 6", "samples: 2")))
        with open("/dev/full", "wb") as full:
            for arguments in (["results", "runs/digits"], ["best", "runs/digits"], ["status", "runs/digits"], ["--help"],
                              ["results", "runs/digits", "--format", "json"], ["export", "runs/digits"]):
                done = subprocess.run([HYPERTUNE, *arguments], cwd=self.folder, stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), (arguments, done.stderr))
                self.assertIn("could not be written", done.stderr)
        reader = subprocess.Popen([HYPERTUNE, "results", "runs/digits"], cwd=self.folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        reader.stdout.close()  # who has read enough is not told that the rest did not arrive
        self.assertEqual((reader.stderr.read(), reader.wait(60)), ("", 0))
        reader.stderr.close()

    def test_a_line_that_nobody_can_read_changes_no_exit_code(self):
        self.run_command("run", self.write(SWEEP.replace("samples: 6", "samples: 2")))
        with open("/dev/full", "wb") as full:
            for code, arguments in ((0, ["export", "runs/digits", "--format", "optuna", "--output", "all.db"]),
                                    (2, ["stop", "runs/digits"]), (2, ["results", "absent"])):
                done = subprocess.run([HYPERTUNE, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=full)
                self.assertEqual(done.returncode, code, arguments)

    def test_nonsense_is_one_clear_error(self):
        (self.folder / "binary.yaml").write_bytes(bytes(range(256)) * 8)
        self.write("[" * 100_000, "deep.yaml")
        self.write("a: " + "{a: " * 100_000, "deeper.yaml")
        self.write("- " * 100_000, "deepest.yaml")
        for name in ("binary.yaml", "deep.yaml", "deeper.yaml", "deepest.yaml", ".", "/dev/null", "/dev/zero", "absent.yaml"):
            out, err = self.run_command("run", name, code=2)
            self.assertEqual((out, err.count("\n")), ("", 1), (name, err))
            self.assertIn(name, err)
        self.write(SWEEP)
        for value in ("samples=99999999999999999999", "seed=1e400", "concurrency=-1", "space.lr={uniform: [0, 1e999]}",
                      "resources={cpus: 1e30}", "resources={memory: 99999999999TB}", "stop={time: 1e300h}", "output=/dev/null/x"):
            _, err = self.run_command("run", "sweep.yaml", "--set", value, code=2)
            self.assertEqual(err.count("\n"), 1, (value, err))
            self.assertIn("hypertune: ", err)

    def test_a_shells_line_in_place_of_words_is_refused_before_anything_runs(self):
        self.write(re.sub(r"command: \[.*\]", 'command: "python3 train.py --lr {lr}"', SWEEP))
        _, err = self.run_command("run", "sweep.yaml", code=2)
        self.assertIn("""'trial.command' is a list of words: write [python3, train.py, --lr, "{lr}"], not""", err)
        self.assertFalse((self.folder / "runs").exists())

    def test_a_mistake_on_the_command_line_is_named_in_its_words(self):
        self.write(SWEEP)
        for value, says in (("samples=many", "'samples' must be a whole number"), ("schedule.type=asah", "asah"),
                            ("sampels=3", "did you mean 'samples'"), ("stop={tiem: 3}", "tiem"),
                            ("executor={type: local, cpu: 1}", "did you mean 'cpus'"), ("stop.plateau.patience=x", "patience")):
            _, err = self.run_command("run", "sweep.yaml", "--set", value, code=2)
            self.assertIn(f"--set {value}: ", err)
            self.assertIn(says, err)
            self.assertNotIn("sweep.yaml:", err)
        _, err = self.run_command("run", "sweep.yaml", "--executor", "ssh", code=2)
        self.assertIn("--executor ssh: ", err)
        _, err = self.run_command("run", "sweep.yaml", "--executor", "kubernetes", code=2)
        self.assertIn("image is missing", err)
        _, err = self.run_command("run", "sweep.yaml", "--executor", "mesos", code=2)
        self.assertNotIn("mesos}", err)
        self.assertNotIn("mesos", self.run_command("run", "--help")[0])
        _, err = self.run_command("stauts", "runs/digits", code=2)
        self.assertIn("there is no command 'stauts': did you mean 'status'?", err)
        _, err = self.run_command("resume", "runs/digits", code=2)
        self.assertIn("hypertune run SWEEP.yaml --resume", err)
        _, err = self.run_command("frobnicate", code=2)
        self.assertIn("'frobnicate'; there are run, status", err)
        self.assertNotIn("rsync_up", err)  # the old spelling of another one
        self.assertIn("name a command: run, ", self.run_command(code=2)[1])
        _, err = self.run_command("run", code=2)
        self.assertIn("hypertune: 'hypertune run': SWEEP is required (hypertune run --help says more)", err)
        _, err = self.run_command("run", "sweep.yaml", "--sampels", "3", code=2)
        self.assertIn("'hypertune run' has no option '--sampels': did you mean '--samples'?", err)
        _, err = self.run_command("best", "runs/digits", "more", code=2)
        self.assertIn("takes no further argument 'more'", err)

    def test_a_stopped_trial_says_at_which_rung_and_what_the_bar_was(self):
        # In an ordered run a trainer that has ended is judged by each of its lines all the same.
        self.run_command("run", self.write(SWEEP + "ordered: true\n"), "--samples", "12")
        stopped = [r for r in self.results() if r["state"] == "stopped"]
        self.assertTrue(stopped)
        for result in stopped:
            self.assertRegex(result["cause"], r"^stopped by asha at rung [12] \((1 step|3 steps)\): accuracy -?[0-9.e-]+, "
                                              r"needed -?[0-9.e-]+ \(the best \d+ of \d+\)$")
        status = self.run_command("status", "runs/digits")[0]
        self.assertRegex(status, r"last stopped: trial \d+: stopped by asha at rung ")
        self.assertIn("search auto: gp, schedule asha", status)
        self.assertIn("stopped by asha at rung 1 (1 step)", self.run_command("results", "runs/digits")[0])

    def test_loggers_from_the_file(self):
        text = SWEEP + "loggers: [tensorboard, jsonl]\n"
        self.complain(text.replace("tensorboard", "tensorbord"), "sweep.yaml:15", "did you mean 'tensorboard'?")
        self.complain(text.replace("jsonl", "tensorboard"), "sweep.yaml:15", "named twice")
        self.complain(text.replace("jsonl", "{jsonl: {file: x}}"), "sweep.yaml:15", "loggers take no options")
        self.complain(text.replace("jsonl", "prometheus"), "sweep.yaml:15", "needs options: {type: prometheus, file")
        self.complain(text.replace("jsonl", "{type: mlflow}"), "sweep.yaml:15", "has no 'uri'")
        self.complain(text.replace("jsonl", "{type: mlflo, uri: a}"), "sweep.yaml:15", "did you mean 'mlflow'?")
        self.complain(text.replace("jsonl", "{type: mlflow, uri: 'mlflow.example'}"), "is no address of an MLflow server")
        self.run_command("run", self.write(text), "--samples", "2")
        folder = self.folder / "runs/digits"
        events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        self.assertEqual([e["sequence"] for e in events], list(range(1, len(events) + 1)))
        self.assertEqual(events[-1]["event"], "experiment_ended")
        for trial in ("0", "1"):
            self.assertTrue(list((folder / "trials" / trial).glob("events.out.tfevents.*")))
            self.assertTrue((folder / "trials" / trial / "progress.csv").exists())

    def test_a_warm_start_says_what_it_took_over(self):
        self.run_command("run", self.write(SWEEP))
        again = SWEEP.replace("runs/digits", "runs/again") + "search: {type: tpe, warm_start: [runs/digits]}\n"
        _, err = self.run_command("run", self.write(again, "again.yaml"))
        self.assertIn("hypertune: warm start with 6 trials of runs/digits\n", err)
        self.assertIn("search tpe, warm start with 6 trials of runs/digits", self.run_command("status", "runs/again")[0])
        narrow = again.replace("[1.0e-4, 1.0e-1]", "[1.0e-3, 1.0e-1]").replace("runs/again", "runs/narrow")
        _, err = self.run_command("run", self.write(narrow, "narrow.yaml"))
        self.assertRegex(err, r"warm start with \d trials? of runs/digits \(\d do(es)? not fit this space: ")

    def test_failures_are_counted_by_trial(self):
        self.write("import sys\nsys.exit(3)\n", "fails.py")
        text = SWEEP.replace("train.py", "fails.py").replace("samples: 6", "samples: 4") + "failures: {max_retries: 2}\n"
        _, err = self.run_command("run", self.write(text), "--plain", code=1)
        self.assertIn("digits: 4 trials failed (12 attempts), last trial ", err)
        self.assertNotIn("12 failed", err)

    def test_nothing_but_nan_is_no_result_and_said_to_be(self):
        self.write("print('{\"accuracy\": NaN}')\n", "nan.py")
        _, err = self.run_command("run", self.write(SWEEP.replace("train.py", "nan.py").replace("samples: 6", "samples: 2")), code=1)
        self.assertIn("none reported a finite 'accuracy' (2 completed)", err)
        self.assertNotIn("no trial completed", err)

    def test_a_population_without_checkpoints_is_told_once(self):
        text = SWEEP.replace("{type: asha, grace_period: 1, max_steps: 9, reduction_factor: 3}", "{type: pbt, perturbation_interval: 2, max_steps: 8, quantile_fraction: 0.5}")
        self.environment.update(EVERY="0")
        _, err = self.run_command("run", self.write(text))
        self.assertEqual(err.count("goes on as it was"), 1, err)

    def test_bad_usage(self):
        for arguments in (["run"], ["run", "absent.yaml"], ["frobnicate"], ["results", "absent"], ["best", "absent"],
                          ["run", self.write(SWEEP), "--resume"], ["run", "sweep.yaml", "--samples", "0"]):
            _, err = self.run_command(*arguments, code=2)
            self.assertTrue(err.strip(), arguments)

    def test_trials_that_failed_after_a_report_have_no_result(self):
        self.write("import os, sys\nprint('{\"accuracy\": 0.5}', flush=True)\n"
                   "if os.environ['HYPERTUNE_TRIAL'] in os.environ['FAIL']: sys.exit(3)\n", "train.py")
        sweep = self.write(SWEEP.replace("samples: 6", "samples: 3"))
        self.environment["FAIL"] = "012"
        _, err = self.run_command("run", sweep, "--plain", code=1)
        self.assertIn("the experiment failed", err)
        self.environment["FAIL"] = "02"
        out, _ = self.run_command("run", sweep, "--output", "runs/some")
        self.assertIn("best: trial 1", out)
        self.run_command("run", sweep, "--output", "runs/limit", "--set", "failures.max_trials=1", code=1)

    def test_an_experiment_without_a_result_has_failed(self):
        _, err = self.run_command("run", self.write(SWEEP.replace("[python3, train.py]", "[sh, -c, 'echo no good >&2; exit 3']")), code=1)
        self.assertIn("failed", err)
        results = self.results()
        self.assertEqual({r["state"] for r in results}, {"failed"})
        self.assertIn("3", results[0]["cause"]["text"] if isinstance(results[0]["cause"], dict) else results[0]["cause"])


if __name__ == "__main__":
    unittest.main()
