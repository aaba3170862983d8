#!/usr/bin/env python3
"""Random schemas and values: stet accepts exactly what jsonschema accepts (Debian's python3-jsonschema, another implementation of draft 2020-12).

usage: schema.py [SEED [CASES]]. What stet says is asked of `unit/schema`, which reads lines of schema and value.
"""
import json, os, pathlib, random, subprocess, sys

import jsonschema

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
CASES = int(sys.argv[2]) if len(sys.argv) > 2 else 500 if os.environ.get("STET_TEST_SHORT") else 100000 if os.environ.get("STET_TEST_LONG") else 6000
NAMES = ["a", "b", "ab", "n1", "", "x/y", "é"]
PATTERNS = ["^a", "b$", "^n[0-9]", "x", "^$", "."]
random.seed(SEED)
pick = random.choice


def scalar():
    return pick([None, True, False, 0, 1, -1, 2, 3, 1.5, 2.0, 10, "", "a", "ab", "abc", "n1", "é", "日本語"])


def value(depth=3):
    kind = random.random()
    if depth == 0 or kind < 0.3:
        return scalar()
    if kind < 0.6:
        return [value(depth - 1) for _ in range(random.randrange(4))]
    return {pick(NAMES): value(depth - 1) for _ in range(random.randrange(4))}


def schemas(depth, least=1):
    return [schema(depth - 1) for _ in range(random.randrange(least, 4))]


def mapping(keys, make):
    return {pick(keys): make() for _ in range(random.randrange(3))}


def reference():
    return pick(["#/$defs/a", "#/$defs/x~1y", "#/$defs/%C3%A9", "#word", "#/$defs/a", "https://x/root#word", "https://x/root#/$defs/a"])


# keyword -> its argument; nested schemas get smaller
MAKE = {
    "type": lambda d: pick(["null", "boolean", "integer", "number", "string", "array", "object", ["object", "array"], ["integer", "string", "null"]]),
    "enum": lambda d: [value(1) for _ in range(random.randrange(1, 5))],
    "const": lambda d: value(1),
    "properties": lambda d: mapping(NAMES, lambda: schema(d - 1)),
    "patternProperties": lambda d: mapping(PATTERNS, lambda: schema(d - 1)),
    "additionalProperties": lambda d: schema(d - 1),
    "propertyNames": lambda d: schema(d - 1),
    "required": lambda d: random.sample(NAMES, random.randrange(3)),
    "minProperties": lambda d: random.randrange(3),
    "maxProperties": lambda d: random.randrange(4),
    "dependentRequired": lambda d: mapping(NAMES, lambda: random.sample(NAMES, random.randrange(3))),
    "dependentSchemas": lambda d: mapping(NAMES, lambda: schema(d - 1)),
    "unevaluatedProperties": lambda d: schema(d - 1),
    "items": lambda d: schema(d - 1),
    "prefixItems": lambda d: schemas(d),
    "contains": lambda d: schema(d - 1),
    "minContains": lambda d: random.randrange(3),
    "maxContains": lambda d: random.randrange(3),
    "minItems": lambda d: random.randrange(3),
    "maxItems": lambda d: pick([0, 1, 2, 3, 2.0]),
    "uniqueItems": lambda d: pick([True, False]),
    "unevaluatedItems": lambda d: schema(d - 1),
    "minimum": lambda d: pick([0, 1, 1.5]),
    "maximum": lambda d: pick([0, 1, 2.5]),
    "exclusiveMinimum": lambda d: pick([0, 1]),
    "exclusiveMaximum": lambda d: pick([2, 3]),
    "multipleOf": lambda d: pick([1, 2, 0.5]),
    "minLength": lambda d: random.randrange(3),
    "maxLength": lambda d: random.randrange(3),
    "pattern": lambda d: pick(PATTERNS),
    "allOf": schemas, "anyOf": schemas, "oneOf": schemas,
    "not": lambda d: schema(d - 1),
    "if": lambda d: schema(d - 1), "then": lambda d: schema(d - 1), "else": lambda d: schema(d - 1),
    "$ref": lambda d: reference(),
    "title": lambda d: "an annotation",
}


def schema(depth=3):
    if depth <= 0 or random.random() < 0.1:
        return pick([True, False, {}, {"type": pick(["string", "integer", "object"])}, {"const": scalar()}])
    return {name: MAKE[name](depth) for name in random.sample(list(MAKE), random.randrange(1, 5))}


def leaf(depth=2):
    """A schema without references: what they lead to, so that none leads back to itself."""
    s = schema(depth)
    text = json.dumps(s)
    return s if "$ref" not in text else leaf(depth)


def document():
    s = schema(3)
    if not isinstance(s, dict):
        return s
    word = leaf(1)
    s["$id"] = "https://x/root"
    s["$defs"] = {"a": leaf(), "x/y": leaf(), "é": leaf(), "w": {**(word if isinstance(word, dict) else {}), "$anchor": "word"}}
    return s


cases = [(document(), value()) for _ in range(CASES)]
text = "".join(json.dumps(s) + "\t" + json.dumps(v) + "\n" for s, v in cases)
program = pathlib.Path(os.environ["STET_BUILD"]) / "test" / "unit" / "schema"
answers = subprocess.run([program, "--lines"], input=text, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
different, accepted = [], 0
for (s, v), answer in zip(cases, answers, strict=True):
    expected = "valid" if jsonschema.Draft202012Validator(s).is_valid(v) else "invalid"
    accepted += expected == "valid"
    if answer.split(" ")[0] != expected:
        different.append(f"{json.dumps(s)} with {json.dumps(v)}: {answer}, and jsonschema says {expected}")
print(f"# seed {SEED}: {CASES} cases, {accepted} of them valid, {len(different)} different")
for line in sorted(different, key=len)[:5]:
    print("# " + line)
print(("not ok" if different else "ok") + " 1 - both implementations agree")
print(("ok" if CASES / 20 < accepted < CASES * 19 / 20 else "not ok") + " 2 - the cases are of both kinds")
print("1..2")
sys.exit(bool(different))
