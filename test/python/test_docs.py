"""The guide and the examples do what they say."""
import os
import pathlib
import re

import pytest

from stet import FsPersister

SOURCE = pathlib.Path(os.environ["STET_SOURCE"])
PAGE = (SOURCE / "docs/python.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.S | re.M)


def test_the_page_has_its_examples():
    assert len(EXAMPLES) == 13


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_it_says(run, number):
    wanted = re.findall(r"^#> ?(.*)$", EXAMPLES[number], re.M)
    process = run.start(EXAMPLES[number])
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and err == "" and out.splitlines() == wanted, out + err


def test_links_of_the_page_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (SOURCE / "docs" / link).exists(), link


def test_every_public_name_is_on_the_page_or_in_its_docstring():
    import stet

    for name in stet.__all__:
        assert name in PAGE or getattr(stet, name).__doc__, name


def test_every_option_of_the_library_is_a_parameter():
    options = set(re.findall(r"^(\w+) +=", re.search(r"\[persist.defaults\]\n(.*?)\n\n", (SOURCE / "docs/persist.md").read_text(), re.S)[1], re.M))
    import inspect

    assert options and options <= set(inspect.signature(FsPersister).parameters), options - set(inspect.signature(FsPersister).parameters)


def test_the_primes_are_counted_once(run, here):
    text = (SOURCE / "examples/python/primes.py").read_text()
    first, second = run(text), run(text)
    assert first.count("counting") == 3 and "made," in first and "5133" in first
    assert second.count("counting") == 0 and "found," in second and "5133" in second
    third = run(text.replace("[1_000, 10_000, 50_000]", "[1_000, 10_000, 20_000]"))
    assert third.count("counting") == 1 and "2262" in third
    fourth = run(text.replace("n > 1 and all", "n >= 2 and all"))
    assert fourth.count("counting") == 3 and "5133" in fourth


def test_visits_are_counted(run):
    text = (SOURCE / "examples/python/visits.py").read_text()
    assert run(text)[:2] == ["visit", "1,"] and run(text)[:2] == ["visit", "2,"]
