"""page.py PAGE.md PAGE.html: writes the page as HTML, and prints its name, title and sections as JSON."""
import html
import json
import pathlib
import re
import sys


def inline(text):
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", lambda m: f'<a href="{m[2].replace(".md", ".html")}">{m[1]}</a>', text)


def block(text):
    lines = text.splitlines()
    if text.startswith("#"):
        level = len(text) - len(text.lstrip("#"))
        return f"<h{level}>{inline(text[level:].strip())}</h{level}>"
    if text.startswith("```"):
        return "<pre>" + html.escape("\n".join(lines[1:-1]), quote=False) + "</pre>"
    if text.startswith("|"):
        rows = [[inline(cell.strip()) for cell in line.strip("|").split("|")] for line in lines if not re.match(r"\|\s*-", line)]
        return "<table>" + "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows) + "</table>"
    if re.match(r"[*-] ", text):
        return "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in re.split(r"(?:^|\n)[*-] ", text)[1:]) + "</ul>"
    return f"<p>{inline(text)}</p>"


source, target = map(pathlib.Path, sys.argv[1:])
blocks = re.findall(r"```.*?```|[^\n].*?(?=\n\n|\n*\Z)", source.read_text(encoding="utf-8"), re.S)
headings = [b.splitlines()[0].lstrip("# ") for b in blocks if b.startswith("#")]
body = "\n".join(block(b) for b in blocks)
target.write_text(f"<!doctype html>\n<meta charset=utf-8>\n<title>{html.escape(headings[0])}</title>\n{body}\n", encoding="utf-8")
json.dump({"name": source.stem, "title": headings[0], "sections": headings[1:]}, sys.stdout)
