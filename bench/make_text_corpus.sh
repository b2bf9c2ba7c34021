#!/usr/bin/env bash
# Makes a corpus of real text in many languages from Debian packages: manuals, help pages, dictionaries, manual pages.
# Nothing is installed; packages are downloaded with apt-get download and unpacked. Needs Debian or Ubuntu, python3.
#
#   bench/make_text_corpus.sh [FOLDER]          default: build/corpus; writes FOLDER/corpus.jsonl and FOLDER/packages.txt
#
# One line {"text": ..., "source": "package/path"} per document. A package gives at most 25 MB of text if it is English,
# else 4 MB, so that no language outweighs the others. About 250 MB are downloaded for about 280 MB of text.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "${1:-build/corpus}" && cd "${1:-build/corpus}" && pwd)

english="linux-doc-6.1 python3.11-doc postgresql-doc-15 cppreference-doc-en-html perl-doc dict-gcide dict-wn dict-jargon
    manpages manpages-dev fortunes debian-policy libreoffice-help-en-us"
languages="debian-handbook gnome-user-docs installation-guide-amd64 dict-freedict-deu-eng wukrainian wbulgarian"
for code in de fr es it pt-br nl pl cs sv tr hu fi da ru el ja zh-cn zh-tw ko hi km vi; do
    languages+=" libreoffice-help-$code"
done
for code in de fr es it pl pt-br nl cs da hu ro ru uk ja zh ko tr fi sv sr el; do
    languages+=" manpages-$code manpages-$code-dev fortunes-$code debian-reference-$code developers-reference-$code"
    languages+=" maint-guide-$code debian-faq-$code aptitude-doc-$code"
done

mkdir -p "$out/packages"
cd "$out/packages"
for package in $english $languages; do
    ls "${package}"_*.deb >/dev/null 2>&1 || apt-get download "$package" >/dev/null 2>&1 || true  # not all exist everywhere
done
ls ./*.deb | sed 's|^\./||' >"$out/packages.txt"
python3 "$here/peers/text_corpus.py" "$out/packages" "$out/corpus.jsonl" $english
