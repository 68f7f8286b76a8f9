"""hypertune check: every mistake at once, what a sound sweep would do, and one trial of it."""
import re

from support import *

GOOD = SWEEP.replace("samples: 6\nseed: 1\n", "samples: 27\n").replace("resources: {cpus: 1}\n", "")


class Check(Case):
    def check(self, text, *more, code=0):
        return self.run_command("check", self.write(text), *more, code=code)

    def assert_nothing_made(self):
        self.assertEqual({p.name for p in self.folder.iterdir()} - {"sweep.yaml", "train.py"}, set())

    def test_all_mistakes_at_once(self):
        text = GOOD.replace("samples: 27", "samples: many").replace("max_steps: 9", "max_step: 9").replace("mode: max", "mode: best")
        text = text.replace("hidden: {log_int", "hidden: {logint") + "stopp: {time: 1m}\n"
        out, err = self.check(text, code=2)
        self.assertEqual(out, "")
        for line in (6, 8, 9, 10, 13):
            self.assertRegex(err, rf"(?m)^hypertune: sweep.yaml:{line}: ", err)
        self.assertIn("5 errors in sweep.yaml", err)
        self.assertIn("did you mean 'max_steps'?", err)
        # What run says first is among them.
        _, first = self.run_command("run", "sweep.yaml", code=2)
        self.assertIn(first.strip(), err)

    def test_all_domains_and_first_configurations_that_are_wrong(self):
        space = GOOD[GOOD.index("space:"):GOOD.index("metric:")]
        text = GOOD.replace(space, "space:\n  a: {uniform: [1, 0]}\n  b: {log_uniform: [0, 1]}\n  c: {uniform: [0, 1]}\n")
        _, err = self.check(text, code=2)
        self.assertIn("2 errors in sweep.yaml", err)
        self.assertIn("parameter 'a': the lower bound 1 is above", err)
        self.assertIn("parameter 'b': the lower bound of log_uniform is 0", err)
        text = text.replace("[1, 0]", "[0, 1]").replace("log_uniform", "uniform") + "start_with:\n  - {a: 9}\n  - {q: 1}\n"
        _, err = self.check(text, code=2)
        self.assertIn("2 errors in sweep.yaml", err)
        self.assertIn("parameter 'a' cannot be 9", err)
        self.assertIn("'q'", err)

    def test_what_is_wrong_beyond_the_words(self):
        for change, says in ((("python3, train.py", "./nothing"), "there is no program './nothing'"),
                             (("train.py]", 'train.py, --a, "{learning}"]'), "names 'learning', which is no parameter"),
                             (("samples: 27\n", ""), "how many trials?"),
                             (("metric: accuracy\nmode: max", "search: cma_es\nobjectives: {a: min, b: min}"), "reads one objective only"),
                             (("concurrency: 2", "resources: {cpus: 100000}"), "no trial can ever run")):
            _, err = self.check(GOOD.replace(*change), code=2)
            self.assertIn(says, err)
        self.write("", "taken")
        _, err = self.check(GOOD.replace("output: runs/digits", "output: taken/digits"), code=2)
        self.assertIn(f"the folder 'taken/digits' for the results cannot be made: '{self.folder / 'taken'}' is a file", err)
        self.assertIn("none.yaml", self.run_command("check", "none.yaml", code=2)[1])
        self.run_command("check", self.write("a: [", "broken.yaml"), code=2)

    def test_what_it_would_do(self):
        out, err = self.check(GOOD)
        self.assertEqual(err, "")
        self.assertIn("sweep.yaml is sound", out)
        self.assertIn("2 parameters, 1 continuous", out)
        self.assertIn("accuracy (max)", out)
        self.assertIn("asha: grace_period 1, max_steps 9, reduction_factor 3, brackets 1, promotion false", out)
        self.assertIn("2 trials at once on this machine", out)
        self.assertIn("runs/digits: new", out)
        reached = re.findall(r"(\d+) to (\d+) steps?", out)
        self.assertEqual(reached[0], ("27", "1"))
        self.assertEqual([int(steps) for _, steps in reached], [1, 3, 9])
        trials = [int(n) for n, _ in reached]
        self.assertEqual(trials, sorted(trials, reverse=True))
        self.assertGreater(trials[-1], 0)
        steps = int(re.search(r"(\d+) steps in all", out).group(1))
        self.assertEqual(steps, trials[0] + 2 * trials[1] + 6 * trials[2])
        self.assertNotIn("warning", out)
        self.assert_nothing_made()

    def test_a_folder_with_other_files_is_not_called_new(self):
        (self.folder / "notes").mkdir()
        self.write("", "notes/mine.txt")
        self.assertIn("notes: no experiment, but it has other files", self.check(GOOD, "--set", "output=notes")[0])

    def test_what_it_would_do_elsewhere(self):
        (self.folder / "data").mkdir()
        for i in range(3):
            (self.folder / f"data/{i}.bin").write_bytes(b"x" * 1024)
        (self.folder / "data/x.tmp").write_bytes(b"y" * 4096)
        out, _ = self.check(GOOD + 'executor: {type: ssh, hosts: [nowhere.invalid], file_mounts: {~/data: {from: data, exclude: ["*.tmp"]}}}\n')
        self.assertIn("over ssh on nowhere.invalid", out)
        self.assertRegex(out, r"data to ~/data: 3 files, 3\.0 KiB")
        _, err = self.check(GOOD + "executor: {type: ssh, hosts: [a], file_mounts: {~/data: nothing}}\n", code=2)
        self.assertIn("there is no 'nothing'", err)
        out, _ = self.check(GOOD + "executor: {type: slurm, partition: gpu, pool: 2..5}\n")
        self.assertIn("2 to 5 workers of Slurm, partition gpu", out)

    def test_files_that_are_not_brought(self):
        elsewhere = GOOD.replace("concurrency: 2\n", "executor: {type: ssh, hosts: [lab1]%s}\n")
        out, _ = self.check(elsewhere % "")
        self.assertIn("'train.py' is a file here that is not brought to the workers: give executor.file_mounts: {train.py: train.py}",
                      " ".join(out.split()))
        for mounts in ("{train.py: train.py}", "{.: .}"):
            self.assertNotIn("is not brought", self.check(elsewhere % f", file_mounts: {mounts}")[0])

    def test_workers_that_can_never_be_together(self):
        def on_pods(workers, pods, more=""):
            return GOOD + f"workers: {workers}\nexecutor: {{type: kubernetes, image: a, cpus: 1, pool: {pods}{more}}}\n"
        self.check(on_pods(2, "1..4"))  # each offers its pod's address
        _, err = self.check(on_pods(3, "1..2"), code=2)
        self.assertIn("no trial can ever run", err)
        _, err = self.check(on_pods("{min: 2, placement: strict_pack}", "1..4", ", reuse: false"), code=2)
        self.assertIn("no trial can ever run", err)
        apart = GOOD + "workers: {min: 2, placement: strict_spread}\nexecutor: {type: ssh, hosts: [a, b]}\n"
        _, err = self.check(apart, code=2)
        self.assertIn("group: {network: 10.1.0.0/16}", err)
        self.check(apart + "group: {network: 10.1.0.0/16}\n")

    def test_a_space_with_fewer_configurations_than_samples(self):
        """check, the run's last line and its status say the same."""
        self.environment.update(STEPS="1")
        space = GOOD[GOOD.index("space:"):GOOD.index("metric:")]
        text = re.sub("schedule: .*\n", "", GOOD.replace(space, "space:\n  lr: {choice: [0.1, 0.2, 0.3]}\n  hidden: {choice: [16]}\n").replace("samples: 27", "samples: 6"))
        for search, trials in (("auto", 3), ("tpe", 3), ("{type: tpe, repeat: 2}", 6), ("{type: nsga2, repeat: 1}", 3), ("grid", 3), ("{type: gp, max_concurrent: 1}", 3),
                               ("random", 6), ("sobol", 6)):
            with self.subTest(search=search):
                out = " ".join(self.check(text, "--set", f"search={search}")[0].split())
                if trials < 6:
                    self.assertIn("warning 'samples' is 6, but the space has 3 configurations: the run ends after 3 trials, when all have been tried", out)
                    self.assertNotIn("again", out)
                elif "repeat" in search:
                    self.assertNotIn("'samples' is 6", out)
                else:
                    self.assertIn("'samples' is 6, but the space has 3 configurations: some are tried again", out)
                self.assertRegex(out, rf" trials {trials};")
                out, err = self.run_command("run", "sweep.yaml", "--plain", "--set", f"search={search}", "--output", "runs/few")
                said = " ".join((out + err).split())
                self.assertIn(f"{trials}/6 trials", said)
                self.assertEqual("(no configuration is left that was not tried: 3 trials instead of 6)" in said, trials < 6, said)
                status, _ = self.run_command("status", "runs/few")
                self.assertEqual("ended: no configuration is left that was not tried: 3 trials instead of 6" in status, trials < 6, status)
                self.assertEqual(len(self.results("runs/few")), trials)
                shutil.rmtree(self.folder / "runs")

    def test_trials_with_one_report(self):
        """No schedule can stop them: what is said of steps would be wrong."""
        measured = GOOD.replace("metric: accuracy\nmode: max", "metric: duration\nmode: min").replace("trial:\n", "trial:\n  measure: [duration]\n")
        for text in (measured, GOOD.replace("trial:\n", "trial:\n  report: last\n"), GOOD.replace("trial:\n", "trial:\n  report: best\n  repeat: 3\n")):
            out = " ".join(self.check(text)[0].split())
            self.assertIn("trials 27; each makes one report, when its command has ended", out)
            self.assertNotIn("steps in all", out)
            self.assertIn("so that 'asha' can stop none early: leave 'schedule' out", out)
            self.assertNotIn("warning", self.check(re.sub("schedule: .*\n", "", text))[0])

    def test_an_experiment_that_is_there(self):
        self.environment.update(STEPS="2")
        self.run_command("run", self.write(GOOD), "--quiet", "--set", "samples=2")
        self.assertIn("there is an experiment already", self.check(GOOD)[0])
        out, _ = self.check(GOOD.replace("output: runs/digits\n", ""))
        self.assertIn("runs/digits-2: new", out)
        self.assertIn("--resume would go on with runs/digits", out)

    def test_other_schedules_and_grids(self):
        for schedule in ("{type: hyperband, max_steps: 9}", "{type: median, grace_period: 2}", "{type: pbt, population_size: 4, max_steps: 8}",
                         "{type: successive_halving, max_steps: 9}", "fifo"):
            out, _ = self.check(re.sub("schedule: .*", f"schedule: {schedule}", GOOD))
            self.assertIn("schedule", out)
        self.assertIn("each trains until its command ends", self.check(re.sub("schedule: .*\n", "", GOOD))[0])
        out, _ = self.check(GOOD.replace("{log_int: [16, 512]}", "{grid: [16, 32, 64]}").replace("samples: 27\n", "samples: 4\n"))
        self.assertIn("a grid of 3 combinations", out)
        self.assertIn("12; ", out)
        self.assertIn("makes 12 trials", out)
        out, _ = self.check(GOOD, "--set", "samples=100000")
        self.assertIn("100000; ", out)
        self.assertIn("about", out)

    def test_warnings(self):
        command = 'command: [python3, train.py, --lr, "{lr}"]'
        for change, says in ((("command: [python3, train.py]", command), "the command never mentions 'hidden'"),
                             (("mode: max", "mode: min"), "by its name it should be large"),
                             (("metric: accuracy", "metric: val_loss"), "by its name it should be small"),
                             (("metric: accuracy\nmode: max", "metric: duration\nmode: min"), r"write 'measure: \[duration\]'"),
                             (("concurrency: 2", "concurrency: 1000"), "cores"),
                             (("log_uniform: [1.0e-4, 1.0e-1]", "choice: [0.1, 0.2]"), None),
                             (("samples: 27", "samples: 27\nstart_with: [{lr: 0.01, hidden: 32}]"), None)):
            out, _ = self.check(GOOD.replace(*change))
            if says is None:
                self.assertNotIn("warning", out)
            else:
                self.assertRegex(out, f"warning .*{says}")
        out = " ".join(self.check(GOOD.replace("train.py", "trian.py"))[0].split())
        self.assertIn("warning the command runs 'trian.py', which does not exist here; is 'train.py' meant?", out)
        self.assertNotIn("never mentions", out)
        out, _ = self.check(GOOD.replace("log_uniform: [1.0e-4, 1.0e-1]", "choice: [0.1, 0.2]").replace("log_int: [16, 512]", "integer: [1, 3]"))
        self.assertIn("the space has 6 configurations", out)

    def test_the_commands_that_would_run(self):
        command = 'command: [python3, train.py, "--lr={lr}", [--hidden, "{hidden}"], "{fast?--fast}"]'
        space = ("  fast: {boolean: [false, true]}\n  opt: {choice: [sgd, adam]}\n"
                 "  momentum: {uniform: [0, 1], when: {opt: sgd}}\n")
        text = GOOD.replace("command: [python3, train.py]", command).replace("space:\n", "space:\n" + space)
        self.assertNotEqual(text.count("momentum"), 0)
        plain = lambda out: " ".join(out.split())
        out = plain(self.check(text)[0])
        self.assertRegex(out, r"command python3 train.py --lr=0\.\d+ --hidden \d+")
        self.assertRegex(out, r"python3 train.py --lr=0\.\d+ --hidden \d+ --fast")
        self.assertIn("the command never mentions 'opt', 'momentum'", out)
        out = plain(self.check(text.replace('"{fast?--fast}"', '--momentum, "{momentum}"'))[0])
        self.assertIn("where 'momentum' is not active, an empty text follows --momentum: write [--momentum, \"{momentum}\"]", out)
        _, err = self.check(text.replace("{fast?--fast}", "{opt?--fast}"), code=2)
        self.assertRegex(err, r"sweep.yaml:\d+: the command's argument: \{opt\?--fast\} needs true, false or a number")

        (self.folder / "t.in").write_text("lr = @lr@\nhidden = @hiden@\n")
        files = text.replace("trial:\n", "trial:\n  files: {in.nml: t.in}\n")
        _, err = self.check(files, code=2)
        self.assertRegex(err, r"sweep.yaml:\d+: t.in:2: @hiden@ names 'hiden', which is no parameter of the space: did you mean 'hidden'")
        (self.folder / "t.in").write_text("lr = @lr@\nopt = @opt@\nmomentum = @momentum@\n")
        out = plain(self.check(files.replace('"{fast?--fast}"', '"{fast?--fast}", "{in.nml}"'))[0])
        self.assertIn("DIRECTORY/in.nml", out)
        self.assertIn("makes DIRECTORY/in.nml from t.in", out)
        self.assertNotIn("warning", out)  # the template mentions the others
        _, err = self.check(files.replace("t.in", "nothing.in"), code=2)
        self.assertRegex(err, r"sweep.yaml:\d+: 'trial.files.in.nml': there is no file 'nothing.in'")

    def test_a_study_and_a_cluster(self):
        out, _ = self.run_command("check", self.write("space: {lr: {uniform: [0, 1]}}\nmetric: loss\nmode: min\n", "study.yaml"))
        self.assertIn("a study", out)
        out, _ = self.run_command("check", self.write("cluster_name: lab\nprovider: {type: local, head_ip: a, worker_ips: [b, c]}\n"
                                                      "file_mounts: {~/x: ./nothing}\n", "cluster.yaml"))
        self.assertIn("a cluster", out)
        self.assertIn("2 to 2", out)
        self.assertIn("there is no '", out)
        _, err = self.run_command("check", self.write("cluster_name: a b\nprovider: {type: local, head_up: a}\nmin_workers: -1\nmaxworkers: 3\n", "cluster.yaml"), code=2)
        for line in (2, 3, 4):
            self.assertIn(f"cluster.yaml:{line}: ", err)

    # ---- one trial ----

    def run_trial(self, program, text=GOOD, code=0, *more):
        (self.folder / "train.py").write_text(program)
        out, err = self.check(text, "--run", *more, code=code)
        self.assert_nothing_made()
        self.assert_nothing_left()
        return out, err

    def test_a_trial(self):
        self.environment.update(STEPS="500", PAUSE="0.01", STEPS_LOG="/dev/null")
        out, err = self.check(GOOD, "--run")
        self.assertEqual(err, "")
        self.assertRegex(out, r"report +step 0: accuracy=")
        self.assertRegex(out, r"checkpoint +\S+, after 1 step")
        self.assertIn("the trial reports what is tuned, and saves", out)
        self.assertEqual(out.count("report  "), 1)
        self.assert_nothing_made()
        self.assert_nothing_left()

    def test_trials_that_report_wrongly(self):
        for program, says in (
                ('print("loss 0.3")', "ended without a report of 'accuracy': print a JSON line"),
                ('print(\'{"acuracy": 0.5}\')', "'acuracy' meant"),
                ('print(\'{"step": 0, "accuracy": NaN}\')', "'accuracy' is nan"),
                ('print(\'{"step": "one", "accuracy": 1}\')', "'step' is the text 'one'"),
                ('print(\'{"accuracy": 0.5, "checkpoint": "../away"}\')', "the checkpoint '../away' is not taken"),
                ('print(\'{"accuracy": 0.5, "checkpoint": "none"}\')', "the checkpoint 'none' is not taken"),
                ('import sys; print("bad luck", file=sys.stderr); sys.exit(3)', "bad luck")):
            _, err = self.run_trial(program, code=1)
            self.assertIn(says, err, program)

    def test_a_trial_that_says_nothing(self):
        begin = time.monotonic()
        out, err = self.run_trial("import subprocess, time\nsubprocess.Popen(['sleep', '300'])\nprint('busy', flush=True)\ntime.sleep(300)\n",
                                  GOOD.replace("command: [python3, train.py]", "command: [python3, train.py]\n  stop_grace: 1s"), 1, "--timeout", "1s")
        self.assertLess(time.monotonic() - begin, 60)
        self.assertIn("no report of 'accuracy' within 1 s", err)
        self.assertRegex(out, r"log +busy")

    def test_of_several_metrics_the_missing_one_is_named(self):
        text = GOOD.replace("metric: accuracy\nmode: max\n", "objectives: {loss: min, accuracy: max}\n")
        text = text.replace("type: asha", "type: mo_asha")
        _, err = self.run_trial("print('{\"loss\": 1}')", text, 1)
        self.assertRegex(err, "it has no 'accuracy'")

    def test_expressions_and_constraints(self):
        text = GOOD.replace("command: [python3, train.py]", 'command: [python3, train.py]\n  metrics: {accuracy: "acc=([0-9.]+)"}')
        out, _ = self.run_trial("print('hello')\nprint('acc=0.25')\n", text)
        self.assertRegex(out, r"log +hello")
        self.assertIn("accuracy=0.25", out)
        _, err = self.run_trial("print('{\"accuracy\": 1}')", GOOD + "constraints: {latency: {at_most: 3}}\n", 1)
        self.assertIn("no 'latency', on which 'constraints' sets a bound", err)

    def test_a_trial_of_several_workers(self):
        program = """if True:
            import json, os, socket, sys
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
            print("hello of", rank, flush=True)
            if sys.argv[1:] == ["bad"] and rank == 1:
                sys.exit("bad luck")
            if rank == 0:  # all are there, or nothing is reported
                server = socket.create_server(place)
                others = [server.accept()[0] for _ in range(world - 1)]
                print(json.dumps({"step": 0, "accuracy": world / 10}), flush=True)
                for each in others:
                    each.recv(1)
            else:
                import time
                for _ in range(600):
                    try:
                        peer = socket.create_connection(place)
                        break
                    except OSError:
                        time.sleep(0.05)
                peer.recv(1)
        """
        text = GOOD.replace("concurrency: 2\n", "workers: {min: 2, max: 4}\nresources: {cpus: 1}\n") + "executor: {type: local, cpus: 3}\n"
        out, err = self.run_trial(program, text)
        self.assertIn("one trial of 2 workers", out)
        self.assertRegex(out, r"workers +2 to 4 for each trial: this machine has room for 3")
        self.assertRegex(out, r"log +hello of 0")
        self.assertRegex(out, r"log +rank 1: hello of 1")
        self.assertRegex(out, r"report +step 0: accuracy=0\.2")
        self.assertIn("the trial reports what is tuned", out)
        self.assertEqual(err, "")
        # One worker is a group as well, where the sweep says that there may be several.
        out, err = self.run_trial(program, text.replace("min: 2", "min: 1"))
        self.assertIn("one trial of 1 worker,", out)
        self.assertRegex(out, r"log +hello of 0")
        self.assertRegex(out, r"report +step 0: accuracy=0\.1")
        _, err = self.run_trial(program, text.replace("[python3, train.py]", "[python3, train.py, bad]"), 1)
        self.assertRegex(err, "the trial failed: .*rank 1.*bad luck")
        _, err = self.run_trial("import time; time.sleep(300)", text, 1, "--timeout", "1s")
        self.assertIn("no report of 'accuracy' within 1 s", err)
        # Elsewhere there may be room that is not here: that is no fault of the sweep.
        text = text.replace("{type: local, cpus: 3}", "{type: ssh, hosts: [a, b]}").replace("cpus: 1}", "cpus: 4000}")
        out, err = self.run_trial(program, text)
        self.assertRegex(out, r"workers +2 to 4 for each trial")
        self.assertIn("no trial was tried: this machine has no room for its workers", out)
        self.assertEqual(err, "")

    def test_what_run_would_refuse(self):
        text = GOOD.replace("samples: 27\n", "samples: 3\n")
        for more, says in (("search: {type: random, warm_start: [runs/none]}\n", "runs/none"),
                           ("loggers: [{type: mlflow, uri: 'ftp://x'}]\n", "'ftp://x' is no address of an MLflow server")):
            _, err = self.check(text + more, code=2)
            self.assertIn(says, err)
            self.run_command("run", "sweep.yaml", code=2)
            self.assertFalse((self.folder / "runs").exists(), "a run that was refused left a folder")
        out, _ = self.check(text + "loggers: [{type: prometheus, file: no/such.prom}]\n")
        self.assertRegex(out, r"warning .*there is no\s+folder 'no'")
        self.run_command("run", self.write(text), "--quiet")
        out, _ = self.check(text + "search: {type: random, warm_start: [runs/digits]}\n")
        self.assertIn("warm start with 3 trials of runs/digits", " ".join(out.split()))

    def test_very_long_trainings_are_not_played(self):
        out, _ = self.check(GOOD.replace("max_steps: 9", "max_steps: 1000000"))
        self.assertRegex(out, r"trials +27; each trains 1000000 steps at most")

    def test_a_grid_says_how_many_trials_there_are(self):
        for values, trials in (("[0.1]", 1), ("[0.1, 0.2]", 2)):
            text = (f"name: g\ntrial: {{command: [echo, '{{{{\"loss\": {{lr}}}}}}']}}\nspace: {{lr: {{grid: {values}}}, x: {{uniform: [0, 1]}}}}\n"
                    f"metric: loss\nmode: min\noutput: g{trials}\n" + THREADS)
            self.assertRegex(self.check(text)[0], rf"trials +{trials}; each trains until its command ends")
            self.run_command("run", "sweep.yaml", "--quiet")
            self.assertEqual(len(self.results(f"g{trials}")), trials)

    def test_usage(self):
        self.check(GOOD, "--timeout", "3s", code=2)
        self.assertIn("a duration", self.check(GOOD, "--run", "--timeout", "soon", code=2)[1])
        self.run_command("check", self.write("space: {lr: {uniform: [0, 1]}}\nmetric: loss\nmode: min\n", "study.yaml"), "--run", code=2)


if __name__ == "__main__":
    unittest.main()
