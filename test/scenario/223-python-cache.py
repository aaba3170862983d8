#!/usr/bin/python3
"""Cached functions and blocks of Python: test_cache, test_keys and test_function of test/python/, one line for each test."""
import os, sys

os.execv(sys.executable, [sys.executable, os.path.join(os.environ["STET_SOURCE"], "test/scenario/220-python.py"), "-k", "test_cache or test_keys or test_function"])
