"""related.py PAGE.md...: which pages speak of the same things: every sentence is held against every other, by groups of three
letters, so that "record" and "recorded" are alike. Prints JSON."""
import collections
import json
import math
import pathlib
import re
import sys

sentences = []
for path in map(pathlib.Path, sys.argv[1:]):
    for text in re.split(r"\n\s*\n|(?<=[.:;])\s", path.read_text(encoding="utf-8")):
        text = re.sub(r"[^a-z]+", " ", text.lower())
        if len(text) > 20:  # a short one is like many
            sentences.append((path.stem, collections.Counter(text[i:i + 3] for i in range(len(text) - 2))))
found_in = collections.Counter(group for _, groups in sentences for group in groups)
vectors = []
for page, groups in sentences:
    weights = {group: count * math.log(len(sentences) / found_in[group]) for group, count in groups.items()}
    length = math.sqrt(sum(w * w for w in weights.values())) or 1
    vectors.append((page, {group: w / length for group, w in weights.items()}))
score = collections.Counter()
for i, (page, a) in enumerate(vectors):
    for other, b in vectors[:i]:
        if page != other:
            likeness = sum(w * b[group] for group, w in a.items() if group in b)
            if likeness > 0.2:
                score[page, other] += likeness
                score[other, page] += likeness
ranked = sorted(score.items(), key=lambda item: (item[0][0], -item[1]))
json.dump([{"of": page, "page": other} for (page, other), _ in ranked], sys.stdout)
