"""hypertune init: a file that check takes as it is, from a command or from what the command says of itself."""
import re

from support import *

TRAIN = r'''
import argparse, json, sys
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01, help="learning rate (default: %(default)s)")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--opt", choices=["sgd", "adam", "rmsprop"], default="sgd", help="the optimizer")
parser.add_argument("--nesterov", action=argparse.BooleanOptionalAction, default=False)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--data", default="/data")
args = parser.parse_args()
for epoch in range(args.epochs):
    print(json.dumps({"step": epoch, "train_loss": 1 / (1 + epoch), "val_accuracy": 0.5 + 0.1 * epoch}), flush=True)
'''


class Init(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "train.py").write_text(TRAIN)

    def init(self, *words, options=(), code=0):
        return self.run_command("init", *options, "--", *words, code=code)

    def text(self):
        return (self.folder / "sweep.yaml").read_text()

    def space(self):
        """Each parameter's domain, as written."""
        block = self.text().split("\nspace:\n")[1].split("\n\n")[0]
        return dict(re.findall(r"^  ([\w.]+): (\{.*?\}) +#", block, re.M))

    def left(self):
        return re.findall(r"# left as it is: (.*?)(?::|,) ", self.text())

    def command(self):
        block = self.text().split("\n  command:\n")[1]
        return [json.loads(w) if w.startswith('"') else w for w in re.findall(r"^    - (.*)$", block, re.M)]

    def program(self, name, text):
        """A program that is found by its place."""
        (self.folder / name).write_text("#!/usr/bin/env python3\n" + text)
        (self.folder / name).chmod(0o755)
        return f"./{name}"

    def runs(self, samples=4):
        """The sweep as it was written: check finds nothing to say, and its trials complete."""
        out, err = self.run_command("check", "sweep.yaml")
        self.assertIn("is sound", out)
        self.assertEqual(err, "")
        self.run_command("run", "sweep.yaml", "--quiet", "--set", f"samples={samples}", "--set", "output=runs/x", "--set", "seed=1")
        results = self.results("runs/x", history=True)
        self.assertEqual(len(results), samples)
        for trial in results:
            self.assertIn(trial["state"], ("completed", "stopped"), trial)
            self.assertTrue(trial["history"], trial)
        return results

    def domain(self, name):
        return re.search(rf"^  {name}: (\{{.*?\}}) ", self.text(), re.M).group(1)

    def test_by_its_words_alone(self):
        out, _ = self.init("python3", "train.py", "--lr", "0.01", "--batch-size=64", "--layers", "2", "--hidden", "128", "--momentum", "0.9",
                           "--opt", "adam", "--amp", "--epochs", "27", "--seed", "3", "--data", "/data/x", "--use-bn", "true", "-wd", "1e-5")
        text = self.text()
        self.assertEqual(self.domain("lr"), "{log_uniform: [0.001, 0.1]}")
        self.assertEqual(self.domain("batch_size"), "{ordinal: [16, 32, 64, 128, 256]}")
        self.assertEqual(self.domain("layers"), "{integer: [1, 4]}")
        self.assertEqual(self.domain("hidden"), "{log_int: [32, 512]}")
        self.assertEqual(self.domain("momentum"), "{uniform: [0, 0.99]}")
        self.assertEqual(self.domain("opt"), "{choice: [adam]}")
        self.assertEqual(self.domain("use_bn"), '{choice: ["false", "true"]}')
        self.assertEqual(self.domain("wd"), "{log_uniform: [1.0e-06, 0.0001]}")
        self.assertIn('- "{lr}"', text)
        self.assertIn('- "--batch-size={batch_size}"', text)
        for left in ("--amp", "--epochs 27", "--seed 3", "--data /data/x"):
            self.assertIn(f"left as it is: {left}", text)
        self.assertIn("max_steps: 27", text)
        self.assertIn("CHANGE THIS", text)
        self.assertIn("8 parameters", out)
        out, err = self.run_command("check", "sweep.yaml")
        self.assertIn("is sound", out)
        self.assertEqual(err, "")

    def test_by_what_it_says(self):
        out, _ = self.init("python3", "train.py", "--lr", "0.01", "--opt", "adam", "--nesterov", "--amp", options=["--probe"])
        self.assertEqual(self.domain("opt"), "{choice: [sgd, adam, rmsprop]}")
        self.assertEqual(self.domain("nesterov"), '{choice: ["--nesterov", "--no-nesterov"]}')
        self.assertIn('- "{nesterov}"', self.text())
        self.assertIn("left as it is: --amp", self.text())
        self.assertIn("metric: val_accuracy\nmode: max", self.text())
        self.assertIn("It tunes val_accuracy (max)", out)
        self.assertIn("the trial reports what is tuned", self.run_command("check", "sweep.yaml", "--run")[0])
        self.run_command("run", "sweep.yaml", "--quiet", "--set", "samples=3", "--set", "output=runs/x")
        self.assertEqual(len(self.results("runs/x")), 3)
        self.assert_nothing_left()

    def test_metrics_in_text(self):
        (self.folder / "train.py").write_text("import time\nfor i in range(3):\n    print(f'epoch {i}: loss = {1 / (i + 1):.3f}, val_acc: {i / 4}', flush=True)\n")
        self.init("python3", "train.py", "--lr", "0.01", options=["--probe"])
        self.assertIn("metric: val_acc\nmode: max", self.text())
        out, _ = self.run_command("check", "sweep.yaml", "--run")
        self.assertRegex(out, r"report +step 0: val_acc=0\b")

    def test_a_number_may_be_nan(self):
        (self.folder / "train.py").write_text("import sys\nfor x in (0.5, 'nan', '-inf', 'Infinity'):\n    print(f'loss: {x}', flush=True)\nsys.exit('out of luck')\n")
        _, err = self.init("python3", "train.py", "--lr", "0.01", options=["--probe"])
        self.assertIn("hypertune: --probe: the command exited with code 1: out of luck", err)
        (self.folder / "train.py").write_text((self.folder / "train.py").read_text().replace("sys.exit", "print"))
        self.run_command("run", "sweep.yaml", "--quiet", "--set", "samples=1", "--set", "output=runs/x")
        self.assertEqual([r["loss"] for r in self.results("runs/x", history=True)[0]["history"]], [0.5, "NaN", "-Infinity", "Infinity"])

    def test_options_of_one_letter(self):
        self.init(self.program("train", ""), "-c", "1", "-g", "0.5", "-C", "0.02", "-e1e-3", "-O2", "-j", "4", "-v", "5", "-m", "12", "-u", "true", "-p", "7391")
        self.assertEqual(self.space(), {
            "c": "{log_uniform: [0.1, 10]}", "g": "{uniform: [0.125, 0.95]}", "C": "{log_uniform: [0.002, 0.2]}", "e": "{log_uniform: [0.0001, 0.01]}",
            "O": "{integer: [1, 4]}", "m": "{log_int: [3, 48]}", "u": '{choice: ["false", "true"]}'})
        self.assertEqual(self.left(), ["-j 4", "-v 5", "-p 7391"])
        self.assertEqual(self.command(), ["./train", "-c", "{c}", "-g", "{g}", "-C", "{C}", "-e{e}", "-O{O}", "-j", "4", "-v", "5", "-m", "{m}", "-u", "{u}", "-p", "7391"])
        self.run_command("check", "sweep.yaml")

    def test_a_share_stays_one(self):
        self.init("python3", "train.py", "--subsample", "0.8", "--colsample_bytree", "1", "--var-decay", "0.95", "--beta2", "0.999", "--quantile", "0.3",
                  "--lr", "0.1", "--unknown", "0.4", "--dropout", "0", "--mixup-ratio", "1.0", "--threshold", "0.5")
        space = self.space()
        self.assertEqual(space["subsample"], "{uniform: [0.2, 0.98]}")
        self.assertEqual(space["colsample_bytree"], "{uniform: [0.25, 1]}")
        self.assertEqual(space["var_decay"], "{uniform: [0.5, 0.995]}")
        self.assertEqual(space["beta2"], "{uniform: [0.99, 0.9999]}")
        self.assertEqual(space["lr"], "{log_uniform: [0.01, 0.99]}")
        self.assertEqual(space["dropout"], "{uniform: [0, 0.5]}")
        for name, text in space.items():
            low, high = map(float, re.search(r"\[(.*), (.*)\]", text).groups())
            self.assertTrue(0 <= low < high <= 1, (name, text))

    def test_what_is_not_tuned(self):
        fixed = """--port 8080 --folds 5 --cv 3 --n-splits 4 --time-limit 60 --timeout 30 --max-time 9 --memory-limit 4096 --threads 2 --nthread 2 --num_threads 2
            --n-jobs 2 -j 2 --numjobs 2 --workers 2 --num-iterations 100 --max-iter 500 --n_epochs 3 --num_boost_round 10 --passes 3 --seed 1 --random-state 7
            --random_seed 3 --verbose 1 --verbosity 2 --device cuda --gpus 1 --local-rank 0 --host localhost --server 10.0.0.1 --url http://x/y --log-interval 10
            --eval_freq 5 --output-dir out --model-file m.bin --test-size 0.2 --max-depth -1 --early-stopping-rounds 10""".split()
        tuned = "--import-share 0.3 --max-leaves 31 --min-samples-split 2 --lora-rank 8 --logit-scale 2.5 --hidden-units 64 --step-size 0.1 --warmup-steps 100".split()
        self.init("python3", "train.py", *fixed, *tuned)
        self.assertEqual(self.left(), [" ".join(pair) for pair in zip(fixed[::2], fixed[1::2])])
        self.assertEqual(list(self.space()), "import_share max_leaves min_samples_split lora_rank logit_scale hidden_units step_size warmup_steps".split())

    def test_names_within_values(self):
        train = self.program("train", "")
        self.init(train, "--zstd=wlog=20,hlog=18", "-var", "rc", "2.5", "-D", "gain=0.3", "--bs=4k", "--r", "1k", "in.txt", "ratio", "0.1", "--params", "a=1.5:b=64")
        self.assertEqual(self.command(), [train, "--zstd=wlog={wlog},hlog={hlog}", "-var", "rc", "{rc}", "-D", "gain={gain}", "--bs={bs}k", "--r", "{r}k", "in.txt",
                                          "ratio", "{ratio}", "--params", "a={a}:b={b}"])
        self.assertEqual(self.domain("bs"), "{ordinal: [1, 2, 4, 8, 16]}")
        self.assertEqual(self.domain("r"), "{log_uniform: [0.1, 10]}")
        self.run_command("check", "sweep.yaml")

    def test_numbers_without_names(self):
        simulate = self.program("simulate", "import sys\nprint('drag:', (float(sys.argv[1]) - 0.2) ** 2 + int(sys.argv[2]))\n")
        self.init(simulate, "0.3", "20", options=["--probe"])
        self.assertEqual(self.command(), [simulate, "{argument_1}", "{argument_2}"])
        self.assertIn("metric: drag\n", self.text())
        self.runs()

    def test_what_starts_the_program(self):
        """Its own options are not those of what starts it, and its help is asked for."""
        options = ["--lr", "0.01", "--opt", "adam", "-c", "0.3"]
        (self.folder / "train.py").write_text(TRAIN.replace('parser.add_argument("--epochs"', 'parser.add_argument("-c", type=float, default=1.0)\nparser.add_argument("--epochs"'))
        for start in (["python3", "-u", "train.py"], ["python3", "-m", "train"], ["python3", "-W", "ignore", "-um", "train"], ["env", "A_B=x", "OMP_NUM_THREADS=2", "python3", "train.py"],
                      ["stdbuf", "-oL", "-e", "L", "python3", "train.py"], ["nice", "-n", "5", "python3", "train.py"], ["timeout", "-k", "5", "60", "python3", "train.py"],
                      ["taskset", "-c", "0", "python3", "train.py"], ["env", "nice", "timeout", "60", "python3", "-u", "train.py"]):
            with self.subTest(start=start):
                self.init(*start, *options, options=["--probe", "--force"])
                self.assertEqual(self.space(), {"lr": "{log_uniform: [0.001, 0.1]}", "opt": "{choice: [sgd, adam, rmsprop]}", "c": "{log_uniform: [0.03, 0.99]}"})
                self.assertEqual(self.command(), [*start, "--lr", "{lr}", "--opt", "{opt}", "-c", "{c}"])
                self.assertIn("metric: val_accuracy", self.text())

    def test_scripts_of_a_shell(self):
        for script, becomes in (
                ("python3 train.py --lr 0.01 --opt adam", "python3 train.py --lr {lr} --opt {opt}"),
                ("cd . && exec python3 -u train.py --lr '0.01' --opt \"adam\" 2>&1 | cat", "cd . && exec python3 -u train.py --lr {lr} --opt {opt} 2>&1 | cat"),
                ("A=1 nice python3 train.py --lr=0.01 --opt adam --data \"$HOME/x\"; echo ${A}", "A=1 nice python3 train.py --lr={lr} --opt {opt} --data \"$HOME/x\"; echo ${{A}}"),
                ("out=$(python3 train.py --lr 0.01 --opt adam); echo \"$out\"", "out=$(python3 train.py --lr {lr} --opt {opt}); echo \"$out\""),
                ("if true; then\n  # --lr 5\n  python3 train.py --lr 0.01 \\\n    --opt adam\nfi", None)):
            for shell in (["sh", "-c"], ["bash", "-euc"]):
                with self.subTest(script=script, shell=shell):
                    self.init(*shell, script, options=["--probe", "--force"])
                    self.assertEqual(self.space(), {"lr": "{log_uniform: [0.001, 0.1]}", "opt": "{choice: [sgd, adam, rmsprop]}"})
                    if becomes:
                        self.assertIn(json.dumps(becomes), self.text())
                    self.assertIn("metric: val_accuracy\nmode: max", self.text())
        self.runs(2)

    def test_what_help_says_of_values(self):
        """Forms of help other than argparse's; the program takes nothing else than it says there."""
        solver = self.program("solver", r'''
import sys
if "--help" in sys.argv:
    sys.exit("""Usage: solver [options] file
options:
-s kind : set type of solver (default 0)
	0 -- primal
	1 -- dual
	2 -- both
-c cost : set the cost (default 1)
-v n: n-fold cross validation mode
-m cachesize : set cache memory size in MB (default 100)
-q : quiet mode (no outputs)

  -decay        = <double> (   0 ..    1) (default: 0.95)
  -grow         = <int32>  [   0 ..    2] (default: 1)
  -luby, -no-luby                         (default: on)
  -loss                loss function {ns, hs, softmax} [softmax]
      --crf <float>           Quality (0-51) [23.0]
      --me <string>           Search method ["hex"]
                                  - dia: diamond
                                  - hex: hexagon
""")
options = dict(zip(sys.argv[1:-1], sys.argv[2:]))
assert options["-s"] in "012" and 0 < float(options["-decay"]) < 1 and options["-grow"] in "012", options
assert 0 <= float(options["--crf"]) <= 51 and options["--me"] in ("dia", "hex") and options["-loss"] in ("ns", "hs", "softmax"), options
print("Accuracy = %g%%" % (90 - abs(float(options["-c"]) - 2)))
''')
        (self.folder / "data").write_text("")
        self.init(solver, "-s", "0", "-c", "1", "-v", "5", "-m", "200", "-decay", "0.9", "-grow", "1", "-luby", "-loss", "hs", "--crf", "23", "--me", "hex", "-q", "data", options=["--probe"])
        self.assertEqual(self.space(), {
            "s": "{choice: [0, 1, 2]}", "c": "{log_uniform: [0.1, 10]}", "decay": "{uniform: [0.225, 0.99]}", "grow": "{integer: [0, 2]}", "luby": '{choice: ["-luby", "-no-luby"]}',
            "loss": "{choice: [ns, hs, softmax]}", "crf": "{log_uniform: [2.3, 51]}", "me": "{choice: [dia, hex]}"})
        self.assertEqual(self.left(), ["-v 5", "-m 200"])
        self.assertIn("metric: Accuracy\nmode: max", self.text())
        for trial in self.runs(8):
            self.assertGreater(trial["metrics"]["Accuracy"], 80)

    def test_ends_that_are_refused(self):
        """Without help, by trying: what is written runs."""
        train = self.program("train", """
import sys
a, b, kind, n = float(sys.argv[2]), sys.argv[4], sys.argv[6], int(sys.argv[8])
assert a <= 40 and n >= 3, "out of range"
print("score:", a / int(b) if b != "1" else 5)
""")
        self.init(train, "--alpha", "20", "--beta", "1", "--kind", "x", "--order", "4", options=["--probe"])
        self.assertEqual(self.domain("order"), "{integer: [3, 8]}")
        self.assertEqual(self.domain("beta"), "{integer: [1, 2]}")
        low, high = map(float, re.search(r"\[(.*), (.*)\]", self.domain("alpha")).groups())
        self.assertTrue(1 <= low < 20 < high <= 40, (low, high))
        self.assertIn("is refused", self.text())
        self.runs(8)

    def test_choices_without_the_metric(self):
        """A value with which the command prints something else cannot be tuned."""
        (self.folder / "train.py").write_text("""
import argparse
p = argparse.ArgumentParser(); p.add_argument("--solver", choices=["a", "b", "r"]); p.add_argument("--c", type=float)
a = p.parse_args()
print("Mean squared error = 3" if a.solver == "r" else f"Accuracy = {90 + a.c}%")
""")
        self.init("python3", "train.py", "--solver", "a", "--c", "0.5", options=["--probe"])
        self.assertEqual(self.domain("solver"), "{choice: [a, b]}")
        self.assertIn("refused: r", self.text())
        self.runs(6)

    def metric(self, lines, *options):
        """The metric chosen for a program that prints these lines, with {x} or, behind a point, {y} in them for its parameter."""
        (self.folder / "train.py").write_text(f"import sys\nx = float(sys.argv[2])\nfor line in {lines!r}: print(line.replace('{{x}}', str(round(90 + x, 3))).replace('{{y}}', str(round(9000 + 100 * x))), flush=True)\n")
        self.init("python3", "train.py", "--lr", "0.5", *options, options=["--probe", "--force"])
        return re.search(r"^metric: (.*)\nmode: (.*)$", self.text(), re.M).groups()

    def test_the_metric_of_held_out_data(self):
        for expected, lines in {
            ("valid_1_auc", "max"): ["[1]\tvalid_0's auc: 0.97{y}\tvalid_0's binary_logloss: 0.3\tvalid_1's auc: 0.9\tvalid_1's binary_logloss: 0.41",
                                     "[2]\tvalid_0's auc: 0.98{y}\tvalid_0's binary_logloss: 0.2\tvalid_1's auc: 0.91\tvalid_1's binary_logloss: 0.40"],
            ("validation-auc", "max"): ["[0]\ttrain-auc:0.95\tvalidation-auc:0.90", "[1]\ttrain-auc:0.97\tvalidation-auc:0.91"],
            ("val_loss", "min"): ["3/3 - 0s - 5ms/step - loss: 0.51 - val_loss: 0.63", "3/3 - 0s - 4ms/step - loss: 0.41 - val_loss: 0.60"],
            ("eval_accuracy", "max"): ["{'loss': 0.5, 'learning_rate': 2e-05, 'epoch': 1.0}", "{'eval_loss': 0.4, 'eval_accuracy': 0.8, 'epoch': 1.0}", "{'eval_loss': 0.3, 'eval_accuracy': 0.9, 'epoch': 2.0}"],
            ("Test_accuracy", "max"): ["Train accuracy: 0.99", "Test accuracy: 0.{y}", "Train accuracy: 0.995"],
            ("dev_loss", "min"): ["train_loss 0.5 dev_loss 0.{y}"],
            ("samples_s_loss", "min"): ["step {x} 505.2 samples/s loss 1.{y}"],
            ("interval_score", "max"): ["loss: 3.5", "interval_score: {x}"],
        }.items():
            with self.subTest(expected=expected):
                self.assertEqual(self.metric(lines), expected)
                self.runs(2)
                shutil.rmtree(self.folder / "runs")

    def test_metrics_that_do_not_change(self):
        lines = ["Number of threads: 7", "Objective value:  1208.0000", "Total time (CPU seconds):  0.{y}  (Wallclock seconds):  0.13"]
        self.assertEqual(self.metric(lines), ("Total_time_CPU_seconds", "min"))
        lines = ['{"epoch": 0, "val_accuracy": 0.5, "loss": 0.9}', '{"epoch": 1, "val_accuracy": 0.5, "loss": 0.8}', '{"epoch": 2, "val_accuracy": 0.5, "loss": 0.7}']
        self.assertEqual(self.metric(lines), ("loss", "min"))
        self.assertEqual(self.metric(["set up CPU = 0.{y} seconds", "Performance: 494228.4 tau/day, {x} timesteps/s"]), ("timesteps_s", "max"))
        self.assertEqual(self.metric(["accuracy = 1", "events per second:  {x}"]), ("events_per_second", "max"))
        self.metric(["score: 5"])
        self.assertIn("It prints score too, which was the same in all runs.\n", self.text())
        self.assertIn("CHANGE THIS", self.text())

    def test_expressions_take_the_whole_number(self):
        for line, name, value in (("acc = {x}%, loss = 3", "acc", 90.5), ("error rate: 1,234.{y} (best 3)", "error_rate", 1234.905), ("(loss: {x})", "loss", 90.5),
                                  ("accuracy: {x}/100 (90%)", "accuracy", 90.5), ("latency: {x} ms", "latency", 0.0905), ("GET: {x} requests per second, p50=0.2 msec", "requests_per_second", 90.5),
                                  ("encoded 75 frames, {x} fps, 272.55 kb/s", "fps", 90.5)):
            with self.subTest(line=line):
                self.metric([line])
                self.assertIn(f"metric: {name}\n", self.text())
                text = re.sub(r"^  lr: .*$", "  lr: {grid: [0.5]}", self.text(), flags=re.M).replace("samples: 30", "samples: 1")
                (self.folder / "sweep.yaml").write_text(text)
                self.run_command("run", "sweep.yaml", "--quiet", "--set", "output=runs/x")
                (trial,) = self.results("runs/x")
                self.assertAlmostEqual(trial["metrics"][name], value, places=3)
                shutil.rmtree(self.folder / "runs")

    def test_a_file_that_is_written_is_the_trials_own(self):
        """gzip is a real program whose output is measured: trials at once must not write one file."""
        (self.folder / "data.txt").write_text("".join(f"{i * i % 977} {i}\n" for i in range(20000)))
        self.init("sh", "-c", "gzip -c -6 data.txt > packed.gz && stat -c 'size: %s' packed.gz", options=["--probe"])
        self.assertEqual(self.command()[2], "gzip -c -{level} data.txt > {directory}/packed.gz && stat -c 'size: %s' {directory}/packed.gz")
        self.assertIn("metric: size\nmode: min", self.text())
        low, high = map(int, re.search(r"\[(.*), (.*)\]", self.domain("level")).groups())
        self.assertEqual((low, high), (1, 9))
        for trial in self.runs(4):
            with open(self.folder / "runs" / "x" / "trials" / str(trial["trial"]) / "packed.gz", "rb") as packed:
                self.assertEqual(len(packed.read()), trial["metrics"]["size"])

    def test_what_is_said_of_a_file_that_is_the_trials_own(self):
        train = self.program("train", "import sys\nopen(sys.argv[4], 'w').write('x')\nprint('score:', sys.argv[2])\n")
        (self.folder / "data.csv").write_text("1")
        self.init(train, "--weight", "2.5", "--model-out", "model.bin", "--data", "data.csv", options=["--probe"])
        self.assertEqual(self.command(), [train, "--weight", "{weight}", "--model-out", "{directory}/model.bin", "--data", "data.csv"])
        self.assertEqual(self.left(), ["--data data.csv"])  # the other one is not as it was

    def test_what_the_trials_will_take_of_the_disk(self):
        train = self.program("train", "import os, sys\nopen(sys.argv[4], 'wb').write(os.urandom(int(float(sys.argv[2]) * 2**20)))\nprint('score:', sys.argv[2])\n")
        out, _ = self.init(train, "--weight", "2", "--model-out", "model.bin", options=["--probe"])
        self.assertRegex(out, r"--probe: a run wrote up to (19\.9|20\.\d) MiB into the trial's folder, which is kept: up to (59|60)\d\.\d MiB for 30 trials\n")
        self.assertIn("  # By --probe a run wrote up to ", self.text())

    def test_a_file_that_all_write(self):
        """One that cannot be elsewhere, as it is read too: one trial at a time."""
        store = self.program("store", "import sys\nopen('counts.txt.new', 'w').write(open(sys.argv[3]).read() + sys.argv[2])\nprint('score:', sys.argv[2])\n")
        (self.folder / "counts.txt").write_text("1")
        self.init(store, "--weight", "2.5", "counts.txt", options=["--probe"])
        self.assertIn("each writes counts.txt.new.\nconcurrency: 1\n", self.text())
        self.assertIn("counts.txt", self.command())
        self.runs(2)

    def test_exit_codes_of_solvers(self):
        solver = self.program("solver", "import sys\nprint('CPU time : %g s' % (float(sys.argv[2]) / 9))\nsys.exit(10)\n")
        self.init(solver, "--rinc", "2.5", options=["--probe"])
        self.assertIn("  success: [0, 10]\n", self.text())
        self.runs(2)
        self.init(self.program("solver", "import sys\nprint('CPU time : %g s' % (float(sys.argv[2]) / 9))\nsys.exit(1)\n"), "--rinc", "2.5", options=["--probe", "--force"])
        self.assertNotIn("success: ", self.text())

    def test_exit_codes_of_sat_solvers_that_print_no_metric(self):
        for code, expected in ((10, "  success: [0, 10]\n"), (20, "  success: [0, 20]\n"), (3, None), (1, None)):
            with self.subTest(code=code):
                solver = self.program("solver", f"import sys\nprint('s SATISFIABLE')\nsys.exit({code})\n")
                self.init(solver, "--rinc", "2.5", options=["--probe", "--force"])
                self.assertEqual(expected is not None, "success: " in self.text())
                if expected:
                    self.assertIn(expected, self.text())
        self.run_command("check", "sweep.yaml")

    def test_what_only_counts_is_no_metric(self):
        lines = ['{"i": 1, "v": 0.{y}}', '{"i": 2, "v": 0.{y}}', '{"i": 3, "v": 0.{y}}']
        self.assertEqual(self.metric(lines)[0], "v")
        self.assertIn("# The command reports v. Is v the one", self.text())
        self.assertEqual(self.metric([line.replace('"i"', '"seen"').replace(": 1", ": 100").replace(": 2", ": 200").replace(": 3", ": 300") for line in lines])[0], "v")
        self.assertEqual(self.metric(['{"i": 1}', "score = {x}", '{"i": 2}', "score = {x}", '{"i": 3}'])[0], "score")
        self.metric(['{"i": 1}', '{"i": 2}', '{"i": 3}'])
        self.assertIn("CHANGE THIS", self.text())

    def test_what_runs_a_container(self):
        """Its options are not those of the program within. (The stand-in runs the words after the image, as docker does.)"""
        self.program("docker", "import os, sys\nw = sys.argv[sys.argv.index('image') + 1:]\nos.execvp(w[0] if w and not w[0].startswith('-') else './entry', w if w and not w[0].startswith('-') else ['entry', *w])\n")
        self.program("entry", TRAIN)
        for start in (["./docker", "run", "--rm", "-it", "--cpus", "2", "-v", "/a:/b", "-e", "X=y", "--shm-size=1g", "image", "python3", "train.py"],
                      ["./docker", "run", "--rm", "--name", "trial", "-m", "512", "image"], ["./docker", "exec", "-i", "-w", "/tmp", "image", "env", "A=1", "python3", "train.py"]):
            with self.subTest(start=start):
                self.init(*start, "--lr", "0.01", "--opt", "adam", options=["--probe", "--force"])
                self.assertEqual(self.space(), {"lr": "{log_uniform: [0.001, 0.1]}", "opt": "{choice: [sgd, adam, rmsprop]}"})
                self.assertEqual(self.command(), [*start, "--lr", "{lr}", "--opt", "{opt}"])

    def test_formats_of_files(self):
        self.init(self.program("encode", ""), "-i", "in.y4m", "-crf", "23", "-f", "null", "-")
        self.assertEqual(self.space(), {"crf": "{log_int: [5, 51]}"})
        self.assertEqual(self.left(), ["-i in.y4m", "-f null"])
        self.init("./encode", "-f", "lavfi", "-i", "testsrc=duration=1:size=160x120", "-crf", "23", "-o", "made", options=["--force"])
        self.assertEqual(list(self.space()), ["crf"])

    def test_of_values_that_only_improve_each_counts(self):
        """A search that says each better solution, in a count whose name is no score's."""
        self.assertEqual(self.metric(["cost 1,067.5 eur", "cost 980.25 eur", "cost {x} eur"]), ("cost", "min"))
        self.assertNotIn("report: last", self.text())
        self.assertIn("max_steps: 3,", self.text())
        self.assertEqual([len(trial["history"]) for trial in self.runs(1)], [3])
        shutil.rmtree(self.folder / "runs")
        self.metric(["cost 980.25 eur", "cost 1,067.5 eur", "cost {x} eur"])
        self.assertIn("report: last", self.text())

    def test_of_a_speed_the_last_one_counts(self):
        self.metric(["speed: 0.9x", "speed: {x}x"])
        self.assertIn("  report: last\n", self.text())
        for trial in self.runs(2):
            self.assertEqual(len(trial["history"]), 1)
            self.assertGreater(trial["metrics"]["speed"], 90)

    def test_units_of_numbers(self):
        for line, unit in (("took: {x}ms", "seconds"), ("BW={x}MiB/s (63.1MB/s)", "bytes"), ("IOPS={x}k, BW=3", "count")):
            with self.subTest(line=line):
                self.metric([line])
                self.assertIn(f", unit: {unit}}}\n", self.text())
                (trial,) = self.runs(1)
                self.assertNotEqual(trial["metrics"], {})
                shutil.rmtree(self.folder / "runs")

    def test_units_that_change_with_the_size(self):
        """800 ms is less than 1.20 s, whichever of them the runs of init have seen."""
        (self.folder / "mul.py").write_text("import sys\nt = 0.4 * int(sys.argv[2])\nprint(f'elapsed: {t * 1000:.1f} ms' if t < 1 else f'elapsed: {t:.2f} s')\n")
        self.init("python3", "mul.py", "-n", "2", options=["--probe"])
        self.assertIn(", unit: seconds}\n", self.text())
        self.run_command("run", "sweep.yaml", "--quiet", "--set", "output=runs/x")
        results = self.results("runs/x")
        self.assertEqual(sorted(trial["params"]["n"] for trial in results), [1, 2, 3, 4])
        for trial in results:
            self.assertAlmostEqual(trial["metrics"]["elapsed"], 0.4 * trial["params"]["n"], places=3)
        shutil.rmtree(self.folder / "runs")
        for line, unit, value in (("peak: {x} MB", "bytes", 90.5e6), ("acc: {x}%", "percent", 90.5), ("acc: {x} %", "percent", 90.5), ("speed: {x}kbit/s", "count", 90500),
                                  ("step: {x}ms/step", "seconds", 0.0905), ("took: 1m{x}s", "seconds", 150.5)):
            with self.subTest(line=line):
                self.metric([line])
                self.assertIn(f", unit: {unit}}}\n", self.text())
                (self.folder / "sweep.yaml").write_text(re.sub(r"^  lr: .*$", "  lr: {grid: [0.5]}", self.text(), flags=re.M).replace("samples: 30", "samples: 1"))
                self.run_command("run", "sweep.yaml", "--quiet", "--set", "output=runs/x")
                (trial,) = self.results("runs/x")
                self.assertAlmostEqual(next(iter(trial["metrics"].values())), value, places=3)
                shutil.rmtree(self.folder / "runs")

    def test_numbers_of_fortran(self):
        """Found by init as run reads them."""
        for lines, name, value in ((["Final energy =   0.9{y}D+02"], "Final_energy", 99.05), (["residual = 0.9{y}d-03"], "residual", 0.9905e-3), (["energy: 0.9{y}0000-100"], "energy", 0.9905e-100),
                                   (["started", " FINAL RESIDUAL   {x} "], "FINAL_RESIDUAL", 90.5), (["DRAG OF THE WING  0.9{y}E+02"], "DRAG_OF_THE_WING", 99.05)):
            with self.subTest(lines=lines):
                self.assertEqual(self.metric(lines), (name, "min"))
                (self.folder / "sweep.yaml").write_text(re.sub(r"^  lr: .*$", "  lr: {grid: [0.5]}", self.text(), flags=re.M).replace("samples: 30", "samples: 1"))
                self.run_command("run", "sweep.yaml", "--quiet", "--set", "output=runs/x")
                (trial,) = self.results("runs/x")
                self.assertAlmostEqual(trial["metrics"][name] / value, 1, places=5)
                shutil.rmtree(self.folder / "runs")

    def test_what_only_shows_a_parameter_is_no_metric(self):
        for echo in ("WARN: lr={p}", "Learning rate: {p}", '{{"lr": {p}}}', "using lr {p:.3f}"):
            with self.subTest(echo=echo):
                (self.folder / "train.py").write_text(f"import sys\np = float(sys.argv[2])\nprint(f'{echo}'.replace('{{{{', '{{'), flush=True)\nfor e in range(5): print(f'| {{e}} | {{1 / (e + 1) + p:.3f}} |')\n")
                out, _ = self.init("python3", "train.py", "--lr", "0.01", options=["--probe", "--force"])
                self.assertIn("none was found in what the command printed", out)
        self.assertEqual(self.metric(["cost: 0.5", "lr: 0.3", "cost: 0.2{y}"], "--cost", "0.5")[0], "cost")   # it has that name, and other values

    def test_what_is_done_in_a_given_time(self):
        self.assertEqual(self.metric(["Doing hash for 1s on 64 size blocks: 83{y} hashes in 1.00s"]), ("size_blocks", "max"))
        self.assertEqual(self.metric(["size of blocks: 83{y} bytes"])[1], "min")

    def test_values_that_help_has_in_other_forms(self):
        solver = self.program("solver", """
import sys
if "--help" in sys.argv:
    sys.exit(\"\"\"Usage: solver [options]
  --decompose=bool           decompose clauses [true]
  -m, --subme <integer>       Subpixel motion estimation [7]
                                  - 0: none
                                  - 1: some
                                  - 2: more
                                  - 3-5: Progressively more
                                  - 6: all
                                  - 7: all, slowly
\"\"\")
print("score:", sum(map(len, sys.argv)))
""")
        self.init(solver, "--decompose=1", "--subme", "7", options=["--probe"])
        self.assertEqual(self.space(), {"decompose": "{choice: [0, 1]}", "subme": "{choice: [0, 1, 2, 3, 4, 5, 6, 7]}"})
        self.init(solver, "-rinc", "2", "--crf", "23", "--growth", "1.5", options=["--force"])
        self.assertEqual(self.space(), {"rinc": "{integer: [2, 4]}", "crf": "{log_int: [5, 51]}", "growth": "{log_uniform: [1.05, 15]}"})

    def test_thousands_of_a_count(self):
        (self.folder / "train.py").write_text("import sys\nprint(f'cycles: {int(float(sys.argv[2]) * 10_000):,}', flush=True)\n")
        self.init("python3", "train.py", "--lr", "0.5", options=["--probe"])
        self.assertIn(", unit: count}\n", self.text())
        for trial in self.runs(3):
            self.assertEqual(trial["metrics"]["cycles"], int(trial["params"]["lr"] * 10_000))

    def test_output_that_is_kept_back(self):
        self.environment.pop("PYTHONUNBUFFERED", None)
        (self.folder / "train.py").write_text("import os, sys, time\nfor i in range(3):\n    print('val_acc:', i + float(sys.argv[2]))\n    time.sleep(1)\n"
                                              "sys.stdout.flush()\nos._exit(0)\n")   # on a busy machine, what Python does at its end takes its time
        self.init("python3", "train.py", "--lr", "0.5", options=["--probe"])
        self.assertIn("  output: line\n", self.text())
        self.init("python3", "-u", "train.py", "--lr", "0.5", options=["--probe", "--force"])
        self.assertNotIn("output: line", self.text())

    def test_how_many_reports_there_are(self):
        self.metric(["epoch 1 val_acc: 0.5", "epoch 2 val_acc: 0.6", "epoch 3 val_acc: 0.7"], "--epochs", "30")
        self.assertIn("max_steps: 3,", self.text())
        self.metric(["val_acc: 0.5{y}"], "--iterations", "500", "--threads", "2")
        self.assertNotIn("schedule: ", self.text())
        self.assertIn(f"resources: {{cpus: {min(2, os.cpu_count())}}}", self.text())

    def test_assignments_and_odd_words(self):
        self.init("python3", "train.py", "model.lr=0.01", "data=/x/y", "name={brace}", "--text", "a: b # c", "--neg", "-0.5", "--zero", "0")
        text = self.text()
        self.assertIn('"model.lr={model.lr}"', text)
        self.assertIn("{{brace}}", text)
        self.assertEqual(self.domain("neg"), "{uniform: [-1, 0]}")
        self.run_command("check", "sweep.yaml")

    def test_a_file_that_is_there_is_left(self):
        self.write("mine\n")
        _, err = self.init("python3", "train.py", "--lr", "1", code=2)
        self.assertIn("--force", err)
        self.assertEqual(self.text(), "mine\n")
        self.init("python3", "train.py", "--lr", "1", options=["--force"])
        self.run_command("check", "sweep.yaml")
        self.init("python3", "train.py", "--lr", "1", options=["-o", "other.yaml"])
        self.run_command("check", "other.yaml")

    def test_what_cannot_be_done(self):
        self.assertIn("no option of the command has a value", self.init("python3", "train.py", "--amp", code=2)[1])
        self.assertIn("there is no program", self.init("./nothing", "--lr", "1", code=2)[1])
        self.run_command("init", code=2)
        self.assertFalse((self.folder / "sweep.yaml").exists())
        self.assertIn("cannot write", self.init("python3", "train.py", "--lr", "1", options=["-o", "no/such/folder.yaml"], code=2)[1])

    def test_a_probe_that_hangs_is_ended(self):
        (self.folder / "train.py").write_text("import subprocess, time\nsubprocess.Popen(['sleep', '300'])\ntime.sleep(300)\n")
        begin = time.monotonic()
        out, err = self.init("python3", "train.py", "--lr", "0.01", options=["--probe", "--timeout", "1s"])
        self.assertLess(time.monotonic() - begin, 60)
        self.assertIn("none was found", out)
        self.assertRegex(err, r"hypertune: --probe: the command was ended after [\d.]+ s, and had printed nothing: give it longer by --timeout")
        self.assert_nothing_left()
        self.run_command("check", "sweep.yaml")


if __name__ == "__main__":
    unittest.main()
