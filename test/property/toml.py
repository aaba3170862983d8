#!/usr/bin/env python3
"""Random TOML, right and mutated: our reader and Python's tomllib take the same texts and read the same values from them."""
import os, random, sys

sys.path.insert(0, os.path.join(os.environ["STET_SOURCE"], "test"))
import toml_oracle

COUNT = 200_000 if os.environ.get("STET_TEST_LONG") else 3_000 if os.environ.get("STET_TEST_SHORT") else 15_000
SEED = int(os.environ.get("STET_TEST_SEED", "20240229"))
rng = random.Random(SEED)
NAMES = ["a", "b", "c", "a-b", "'a'", '"b"', "1", "''", '"\\u0061"', "'x y'"]
SCALARS = ["0", "-17", "+1_000", "0xAb_c", "0o17", "0b1_0", "1.5", "-2e-3", "1_0.0_1e+05", "true", "false", '""', "'\\'", '"\\n\\u00e9\\U0001F600"', '"""\nx\\\n   y"""', "'''a''b'''", "1979-05-27", "1979-05-27T07:32:00Z",
           "1979-05-27 07:32:00.25-08:00", "2000-02-29t00:00:00", "23:59:59.999", '"""""x"""""', "9223372036854775807"]
PIECES = ["\n", "\r\n", "\r", " ", "\t", "=", ".", ",", "[", "]", "[[", "]]", "{", "}", '"', "'", '"""', "'''", "\\", "#", "_", "-", "+", ":", "T", "Z", "e", "0", "9", "x", "\x00", "\x7f", "ä", "\\u", "60", "0000", "inf", "a", "a.b", "\ufeff"]


def blank():
    return rng.choice(["", "", "", " ", "\t"])


def key():
    return f"{blank()}.{blank()}".join(rng.choice(NAMES) for _ in range(rng.choice([1, 1, 1, 2, 2, 3])))


def value(depth):
    kind = rng.random()
    if depth > 3 or kind < 0.6:
        return rng.choice(SCALARS)
    space = lambda: rng.choice(["", " ", "\n", "# c\n", "\r\n"])
    if kind < 0.8:
        return "[" + "".join(space() + value(depth + 1) + space() + "," for _ in range(rng.randrange(3))) + space() + rng.choice(["", value(depth + 1)]) + space() + "]"
    return "{" + ",".join(f"{blank()}{key()}{blank()}={blank()}{value(depth + 1)}{blank()}" for _ in range(rng.randrange(3))) + "}"


def line():
    kind = rng.random()
    if kind < 0.62:
        return f"{blank()}{key()}{blank()}={blank()}{value(0)}"
    if kind < 0.8:
        return f"[{blank()}{key()}{blank()}]"
    if kind < 0.92:
        return f"[[{blank()}{key()}{blank()}]]"
    return rng.choice(["", "# c", "#"])


def document():
    return "".join(line() + rng.choice(["", " # c"]) + rng.choice(["\n", "\n", "\n", "\r\n"]) for _ in range(rng.randrange(1, 9)))


def mutated(text):
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        how = rng.random()
        if how < 0.4:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif how < 0.7:
            text = text[:at] + text[at + rng.randrange(1, 4):]
        elif how < 0.85:
            text = text[:at] + rng.choice(PIECES) + text[at + 1:]
        else:
            other = rng.randrange(len(text) + 1)
            text = text[:at] + text[min(at, other):max(at, other)] + text[at:]
    return text


agreed, taken, problems = 0, 0, []
for begin in range(0, COUNT, 5000):
    texts = []
    for _ in range(min(5000, COUNT - begin)):
        text = document()
        texts.append((mutated(text) if rng.random() < 0.5 else text).encode())
    for text, answer in zip(texts, toml_oracle.ours(texts)):
        taken += "ok" in answer
        problem = toml_oracle.difference(text, answer)
        if problem:
            problems.append(problem)
print("1..2")
print(f"{'not ok' if problems else 'ok'} 1 - {COUNT} random texts are read as tomllib reads them (seed {SEED}, {taken} of them right)")
for problem in problems[:20]:
    print("#  ", problem)
print(f"{'ok' if COUNT * 0.1 < taken < COUNT * 0.9 else 'not ok'} 2 - the random texts are a mixture of right and wrong ones")
sys.exit(1 if problems else 0)
