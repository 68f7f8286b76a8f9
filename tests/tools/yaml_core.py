"""YAML 1.2's core schema for PyYAML, as editors and hypertune read it: 1e-3 is a number, `yes` is a text."""
import re

import yaml


class CoreLoader(yaml.SafeLoader):
    pass


CoreLoader.yaml_implicit_resolvers = {}
for tag, pattern, first in (("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
                            ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
                            ("int", r"[-+]?[0-9]+", "-+0123456789"),
                            ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
                             "-+.0123456789")):
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"), list(first))
CoreLoader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))


def text_keys(value):
    """With every key as a text, which it is in JSON: `{0: 2}` has the key "0"."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): text_keys(item) for key, item in value.items()}
    return [text_keys(item) for item in value] if isinstance(value, list) else value


def load(text):
    return text_keys(yaml.load(text, CoreLoader))
