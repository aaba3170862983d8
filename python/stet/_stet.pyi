"""The extension module: for the classes of this package alone, which say what can be relied on."""
from typing import Any

version: str

def __getattr__(name: str) -> Any: ...
