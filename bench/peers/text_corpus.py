"""Plain text from the files of Debian packages, as JSON lines. See bench/make_text_corpus.sh.

Usage: python3 text_corpus.py FOLDER_OF_DEBS OUTPUT.jsonl [ENGLISH_PACKAGE...]
"""
import gzip
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile

MOST = 200_000  # characters of a document; longer files (dictionaries) are cut at line ends
LEAST = 200
MOST_ENGLISH, MOST_OTHER = 25_000_000, 4_000_000  # bytes of text from one package
BLOCKS = {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "pre", "dt", "dd", "table", "title", "section",
          "item", "note", "media"}
SKIPPED = {"script", "style", "head", "nav"}


class TextOfHtml(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts, self.skipping, self.is_pre = [], 0, 0

    def handle_starttag(self, tag, attributes):
        self.skipping += tag in SKIPPED
        self.is_pre += tag == "pre"
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag):
        self.skipping -= tag in SKIPPED and self.skipping > 0
        self.is_pre -= tag == "pre" and self.is_pre > 0
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data):
        if not self.skipping:
            self.parts.append(data if self.is_pre else re.sub(r"\s+", " ", data))


def html_text(source):
    parser = TextOfHtml()
    parser.feed(source)
    return re.sub(r"\n[ \t]*\n\s*\n", "\n\n", "".join(parser.parts)).strip()


ROFF = [(re.compile(p, re.M), r) for p, r in (
    (r"^[.']\s*\\\".*\n", ""), (r"^\.(SH|SS|TH|TP|B|I|BR|IR|RB|RI|BI|IB|Sh|Ss|Nm|Nd|Fl|Ar|Dq|Xr|Pa)\b ?", ""),
    (r"^[.'].*\n", ""), (r"\\f(\[[^\]]*\]|\(..|.)", ""), (r"\\s[-+]?\d", ""), (r"\\-", "-"), (r"\\\(aq|\\\[aq\]", "'"),
    (r"\\\(dq|\\\[dq\]", '"'), (r"\\\(bu|\\\[bu\]", "\u2022"), (r"\\e", r"\\"), (r"\\[&|/%,^:]", ""), (r"\\~|\\ ", " "),
    (r"\\\(..|\\\[[^\]]*\]|\\\*\(..|\\\*.", ""))]


def roff_text(source):
    for pattern, replacement in ROFF:
        source = pattern.sub(replacement, source)
    return source.strip()


def decode(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None  # an older encoding; which one is not written anywhere


def text_of(path):
    """The text of a file, or None if it is of no known kind."""
    name = path.name
    data = path.read_bytes()
    if name.endswith((".gz", ".dz")):
        data, name = gzip.decompress(data), name[:-3]
    source = decode(data)
    if source is None:
        return None
    if name.endswith((".html", ".htm", ".xhtml", ".page")):
        return html_text(source)
    if re.search(r"/man/", str(path)):
        return roff_text(source)
    if name.endswith((".txt", ".rst", ".pod", ".dict")):
        return source.strip()
    if re.search(r"/(dict|games/fortunes)/", str(path)) and "." not in name:
        return source.strip()
    return None


def documents(text):
    while len(text) > MOST:
        cut = text.rfind("\n", 0, MOST)
        cut = MOST if cut <= 0 else cut + 1
        yield text[:cut]
        text = text[cut:]
    yield text


def main():
    debs, output, english = pathlib.Path(sys.argv[1]), sys.argv[2], set(sys.argv[3:])
    count = size = 0
    by_package = {}
    with open(output, "w", encoding="utf-8") as out:
        for deb in sorted(debs.glob("*.deb")):
            package = deb.name.split("_")[0]
            before = size
            most = MOST_ENGLISH if package in english else MOST_OTHER
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run(["dpkg-deb", "-x", deb, folder], check=True)
                for path in sorted(p for p in pathlib.Path(folder).rglob("*") if p.is_file() and not p.is_symlink()):
                    if size - before >= most or path.name.startswith(("changelog", "copyright", "NEWS.Debian")):
                        continue
                    text = text_of(path)
                    for document in documents(text or ""):
                        if len(document) >= LEAST and size - before < most:
                            source = f"{package}/{path.relative_to(folder)}"
                            out.write(json.dumps({"text": document, "source": source}, ensure_ascii=False) + "\n")
                            count, size = count + 1, size + len(document.encode())
            by_package[package] = size - before
    for package, bytes_ in sorted(by_package.items(), key=lambda kv: -kv[1])[:60]:
        print(f"{bytes_ / 1e6:8.1f} MB  {package}")
    print(f"{count} documents, {size / 1e6:.1f} MB of text in {output}")


if __name__ == "__main__":
    main()
