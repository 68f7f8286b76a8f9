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
        out, _ = self.init("python3", "train.py", "--lr", "0.01", options=["--probe", "--timeout", "1s"])
        self.assertLess(time.monotonic() - begin, 60)
        self.assertIn("none was found", out)
        self.assert_nothing_left()
        self.run_command("check", "sweep.yaml")


if __name__ == "__main__":
    unittest.main()
