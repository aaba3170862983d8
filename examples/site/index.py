"""index.py INDEX.html: the front page, out of the contents that come as JSON on standard input."""
import html
import json
import sys

contents = json.load(sys.stdin)["contents"]
with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("<!doctype html>\n<meta charset=utf-8>\n<title>Documentation</title>\n<h1>Documentation</h1>\n")
    for page in contents:
        see = ", ".join(f'<a href="{name}.html">{name}</a>' for name in page["see"])
        out.write(f'<h2><a href="{page["name"]}.html">{html.escape(page["title"])}</a></h2>\n')
        out.write(f"<p>{len(page['sections'])} sections: {html.escape(', '.join(page['sections']))}</p>\n<p>See also: {see}</p>\n")
