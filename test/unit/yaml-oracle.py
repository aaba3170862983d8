#!/usr/bin/env python3
"""Random YAML, right and mutated: what stet reads from a file of parameters is what PyYAML reads, or it is refused. PyYAML reads YAML 1.1, and what the two versions
read differently is refused; the exceptions (numbers with an exponent and no dot, 0o17, dates) are known here. JSON stands for itself."""
import json, os, pathlib, random, re, subprocess, sys
import yaml

STET = os.environ["STET"]
COUNT = 400 if os.environ.get("STET_TEST_LONG") else 4
random.seed(int(os.environ.get("STET_SEED", "7")))
pick = random.choice
SCALARS = ["1", "-17", "+3", "0", "0x1F", "1.5", "-2.5e+3", "1e3", "true", "False", "null", "~", "yes", "no", "on", "Off", "y", "010", "1_000", "12:30", "1:20:30", "0b1", ".inf", "-.INF", ".nan", "2001-12-14", "=", "<<", "text", "a b", "a: b", "a#b", "a #b", "'it''s'",
           '"a\\nb\\u00e9"', "*x", "&x 1", "!!str 1", "!t 1", "@a", "`a", "%a", "é", "-", "- -", "[]", "{}", "? a", "|", ">", "0.", ".5", "1e400", "99999999999999999999", "+.5", "0o17", "1e-3", "-0", "_1", "1__0", "0x_1", "1.2.3", "1-2", "--", "..."]


def node(depth, indent):
    kind = random.random()
    if depth > 2 or kind < 0.55:
        return " " + pick(SCALARS) + "\n"
    pad = "  " * indent
    if kind < 0.7:
        return " [" + ", ".join(pick(SCALARS[:14]) for _ in range(random.randrange(3))) + "]\n"
    if kind < 0.8:
        return " {" + ", ".join(f"{k}: {pick(SCALARS[:14])}" for k in random.sample("abc", 2)) + "}\n"
    if kind < 0.9:
        return "\n" + "".join(f"{pad}-{node(depth + 1, indent + 1)}" for _ in range(random.randrange(1, 3)))
    if kind < 0.95:
        return f" {pick('|>')}{pick(['', '-', '+'])}\n{pad}  one\n{pad}  two\n\n"
    return "\n" + "".join(f"{pad}{k}:{node(depth + 1, indent + 1)}" for k in random.sample(["a", "b", "c", "1", "on", "'q r'"], random.randrange(1, 3)))


def document():
    text = "".join(f"{k}:{node(0, 1)}" for k in random.sample("abcdef", random.randrange(1, 3)))
    if random.random() < 0.3:
        for _ in range(random.randrange(1, 4)):
            i = random.randrange(len(text) + 1)
            text = pick([text[:i] + pick(["\n", " ", "\t", ":", "-", "#", "'", '"', "[", "]", "{", "}", "&a", "*a", "!", "---\n", "...\n", "\ufeff", "%YAML 1.1\n"]) + text[i:], text[:i] + text[i + 1:]])
    return text


class Loader(yaml.SafeLoader):
    pass


# The core schema of 1.2, where stet does not refuse: exponents without a dot, octal numbers, dates as texts; keys are texts.
Loader.yaml_implicit_resolvers = {k: [(t, r) for t, r in v if t != "tag:yaml.org,2002:timestamp"] for k, v in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"), list("-+.0123456789"))
Loader.add_implicit_resolver("octal", re.compile(r"^0o[0-7]+$"), ["0"])
Loader.add_constructor("octal", lambda loader, n: int(n.value[2:], 8))


def by_text(loader, n):
    out = {}
    for k, v in n.value:
        out[k.value] = loader.construct_object(v, deep=True)
    return out


Loader.add_constructor("tag:yaml.org,2002:map", by_text)


def named(text):
    return sorted(set(re.findall("^([a-f]):", text, re.M)))


root = pathlib.Path(".").absolute()
agreed = refused = lenient = odd = 0
# A pattern of one node for each document would read them one by one; one file with all that are right is read at once.
for i in range(COUNT):
    texts = [document() for _ in range(40)]
    names = []
    for k, text in enumerate(texts):
        (root / f"p{k}.yaml").write_text(text)
        (root / f"t{k}.toml").write_text(f'name = "t"\nparams = "p{k}.yaml"\n[nodes.n]\nref = "value"\ninputs = {{ value = {{ ' + ", ".join(f'{c} = "{{params.{c}}}"' for c in named(text)) + " } }\n")
    script = "".join(f'"$STET" pattern convert t{k}.toml 2>&1; printf "\\001"; ' for k in range(len(texts)))
    said = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True).stdout.split("\x01")
    for text, one in zip(texts, said):
        try:
            ours = json.loads(one)["nodes"][0]["inputs"]["value"]
        except ValueError:
            refused += 1
            continue
        try:
            theirs = yaml.load(text, Loader)
        except (yaml.scanner.ScannerError, yaml.parser.ParserError):
            lenient += "\t" in text or "%" in text  # PyYAML has no tabs between tokens, libyaml has
            odd += not ("\t" in text or "%" in text)
            continue
        want = {k: theirs[k] for k in named(text)}
        # a text that begins with a dollar is written with two in `inputs`; a float that is integral is an integer
        same = json.dumps({k: ours[k] for k in want}, sort_keys=True) == json.dumps(json.loads(json.dumps(want), parse_float=lambda x: int(float(x)) if float(x).is_integer() and abs(float(x)) < 2**53 else float(x)), sort_keys=True)
        if not same:
            print(f"not ok 1 - the same values as PyYAML\n# {text!r}\n# ours: {ours}\n# PyYAML: {want}\n1..1")
            sys.exit(1)
        agreed += 1
if odd:
    print(f"# {odd} texts that PyYAML can't parse")
print(f"{'ok' if agreed > COUNT * 2 else 'not ok'} 1 - {agreed} texts are read as PyYAML reads them, {refused} are refused\n1..1")
