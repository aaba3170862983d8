"""clean.py RAW OUT YEAR: the rows of one year, without those that name no amount."""
import csv
import sys

raw, out, year = sys.argv[1:]
with open(raw, newline="") as source, open(out, "w", newline="") as target:
    writer = csv.writer(target)
    for row in csv.DictReader(source):
        if row["year"] == year and row["amount"]:
            writer.writerow([row["item"], row["amount"]])
