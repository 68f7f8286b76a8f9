"""JSON Schema of the YAML files: it takes what the readers take, and refuses unknown keys and wrong types as they do."""
import re
import sys


from support import *

try:
    import jsonschema
    import yaml_core
except ImportError as error:
    print(f"SKIPPED: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What readers refuse for other reasons than a key or a type: what one value means for another, or the words in a text.
KEY_OR_TYPE = re.compile(
    r"unknown key|is now '|must be a (whole number|number|text|map|list|single value|duration|size)|must be true or false|must be one value"
    r"|has no '\w+': add it|must be \[\w|must be \d+ or more|there is no (searcher|scheduler|executor|logger)|^\S+ 'schedule' |there are ")

# Of these words it is right, but what is refused hangs on another value, or is a NaN, which is a number to JSON Schema; and
# a pod in Kubernetes' own words is any map to it.
BEYOND = re.compile(r"\.prior|its prior is|(workers|pool) must be 1 or more|\.plan\.|\.nan'|must be \[false, true\]|names one of available_node_types|in 'executor\.pod[.']")
# The reader of a CLUSTER.yaml takes providers of Ray's that hypertune does not have, and whoever asks for machines refuses them.
RAYS = re.compile(r"^provider\.type: '(gcp|azure|vsphere|yarn|external|aliyun|spark)' is not one of")


class Schema(Case):
    @classmethod
    def setUpClass(cls):
        cls.schemas = {}
        for kind in ("sweep", "study", "cluster"):
            text = subprocess.run([HYPERTUNE, "schema", kind], check=True, capture_output=True, text=True).stdout
            cls.schemas[kind] = json.loads(text)
        space = {"$schema": cls.schemas["sweep"]["$schema"], "$ref": "#/$defs/space", "$defs": cls.schemas["sweep"]["$defs"]}
        cls.validators = {kind: jsonschema.Draft202012Validator(schema) for kind, schema in [*cls.schemas.items(), ("space", space)]}

    def complaints(self, kind, text):
        return [f"{'.'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in self.validators[kind].iter_errors(yaml_core.load(text))]

    def test_it_is_json_schema_2020_12(self):
        for kind, schema in self.schemas.items():
            self.assertEqual(schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
            jsonschema.Draft202012Validator.check_schema(schema)

    def test_all_examples(self):
        files = [f for f in (ROOT / "examples").rglob("*.yaml")]
        self.assertGreater(len(files), 5)
        for file in files:
            text = file.read_text()
            kind = "cluster" if re.search(r"^provider:", text, re.M) else "sweep" if re.search(r"^trial:", text, re.M) else "study"
            self.assertEqual(self.complaints(kind, text), [], file)

    def test_all_of_the_documents(self):
        blocks = 0
        for page in (ROOT / "docs").glob("*.md"):
            for text in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.M | re.S):
                has = lambda key: re.search(rf"^{key}:", text, re.M)
                if has("apiVersion") or not isinstance(yaml_core.load(text), dict):
                    continue
                blocks += 1
                kind = "cluster" if has("provider") or has("cluster_name") else "sweep"
                if kind == "sweep":
                    text += "" if has("trial") else "\ntrial: {command: [./train]}\n"
                    text += "" if has("space") else "\nspace: {lr: {log_uniform: [1.0e-4, 1.0]}}\n"
                    text += "" if has("metric") or has("objectives") else "\nmetric: accuracy\nmode: max\n"
                self.assertEqual(self.complaints(kind, text), [], f"{page.name}:\n{text}")
        self.assertGreater(blocks, 20)

    def test_what_the_readers_of_the_tests_say(self):
        programs = [p for p in os.environ.get("YAML_TESTS", "").split(":") if p]
        if not programs:
            self.skipTest("YAML_TESTS names no test programs")
        corpus = self.folder / "corpus"
        environment = dict(os.environ, HYPERTUNE_YAML_CORPUS=str(corpus))
        for program in programs:
            subprocess.run([program], env=environment, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        taken = refused = 0
        cases = {line: json.loads(line) for line in corpus.read_text().splitlines()}
        wrong = []
        for case in cases.values():
            try:
                complaints = self.complaints(case["kind"], case["text"])
            except yaml_core.yaml.YAMLError:  # broken on purpose; yaml-cpp closes a quote that is left open
                continue
            if not case["error"]:
                taken += 1
                complaints = [each for each in complaints if not RAYS.search(each)]
                if complaints:
                    wrong.append(("takes", case["text"], complaints[:3]))
            elif KEY_OR_TYPE.search(case["error"]) and not BEYOND.search(case["error"]):
                refused += 1
                if not complaints:
                    wrong.append(("refuses", case["text"], case["error"]))
        self.assertEqual(wrong, [], "\n\n".join(f"the reader {what}:\n{text}\n{why}" for what, text, why in wrong[:40]) + f"\n{len(wrong)} in all")
        self.assertGreater(taken, 100)
        self.assertGreater(refused, 60)

    def test_mistakes(self):
        good = SWEEP
        self.assertEqual(self.complaints("sweep", good), [])
        for more in ("sample: 3\n", "samples: many\n", "samples: 0\n", "schedule: {type: asha, grace: 1}\n", "schedule: {type: nobody}\n",
                     "search: {type: tpe, gamma: 2}\n", "ordered: perhaps\n", "hang_timeout: soon\n", "executor: {type: local, isolation: 1..2}\n",
                     "executor: {type: ssh, hosts: [{name: a, slot: 1}]}\n", "checkpoint: {every: -1}\n", "mode: best\n",
                     "executor: {type: slurm, jobs: none}\n", "log_limit: 12\n"):
            key = more.split(":")[0]
            text = re.sub(rf"^{key}:.*\n", "", good, flags=re.M) + more
            self.assertNotEqual(self.complaints("sweep", text), [], more)
            self.run_command("check", self.write(text), code=2)
        for domain in ("{uniform: [0]}", "{uniform: [0, 1], quantums: 1}", "{integer: [0, 1.5]}", "[1, 2]", "{choice: 3}", "{uniform: [0, 1], bounds: [0, 1]}"):
            text = good.replace("{log_int: [16, 512]}", domain)
            self.assertNotEqual(self.complaints("sweep", text), [], domain)
            self.run_command("check", self.write(text), code=2)

    def test_editors_are_told_meanings_and_defaults(self):
        sweep = self.schemas["sweep"]["properties"]
        self.assertIn("trials to run", sweep["samples"]["description"])
        self.assertEqual(sweep["seed"]["default"], 0)
        self.assertEqual(sweep["mode"]["enum"][:2], ["min", "max"])
        asha = [rule["then"] for rule in sweep["schedule"]["anyOf"][1]["allOf"] if rule["if"]["properties"]["type"]["const"] == "asha"][0]
        self.assertEqual(asha["properties"]["max_steps"]["default"], 81)
        self.assertIn("one in this many", asha["properties"]["reduction_factor"]["description"])
        self.assertFalse(asha["additionalProperties"])


if __name__ == "__main__":
    unittest.main()
