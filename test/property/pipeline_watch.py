#!/usr/bin/env python3
"""Edits under a live watch, each followed at once by a run, always give what a build from scratch gives (pipeline.py)."""
import os, pathlib, runpy

os.environ["STET_PIPELINE_WATCH"] = "1"
runpy.run_path(str(pathlib.Path(__file__).with_name("pipeline.py")), run_name="__main__")
