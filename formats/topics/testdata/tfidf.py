"""Weighs the terms of corpus.json by scikit-learn, and writes tfidf.json.

Usage: pip install scikit-learn==1.9.1; python3 tfidf.py

`go test ./formats/topics -run Learn -update` writes corpus.json: the terms and counts of pages by language, as the
parser of this project found them. So both sides see the same terms. Each page is given to TfidfVectorizer as the list
of its terms, each repeated as often as it occurs.
"""

import json
import pathlib

from sklearn.feature_extraction.text import TfidfVectorizer

here = pathlib.Path(__file__).parent


def vectorizer(pages, norm):
    # smooth_idf and sublinear_tf have their defaults, True and False; max_df keeps every frequent term.
    return TfidfVectorizer(analyzer=lambda page: page, norm=norm, min_df=min(1 + len(pages) // 1000, 5))


def weigh(pages):
    tokens = [[t for t, n in zip(p["terms"] or [], p["counts"] or []) for _ in range(n)] for p in pages]
    if not any(tokens):
        return {"idf": {}, "scores": [{} for _ in pages]}
    plain, unit = vectorizer(pages, None), vectorizer(pages, "l2")
    rows, units = plain.fit_transform(tokens), unit.fit_transform(tokens)
    names = plain.get_feature_names_out()
    scores = []
    for i in range(len(pages)):
        row, other = rows.getrow(i), units.getrow(i)
        length = sum(v * v for v in row.data) ** 0.5
        assert all(abs(v / length - w) < 1e-12 for v, w in zip(row.data, other.data)), "l2 changes the order"
        scores.append({names[j]: round(float(v), 7) for j, v in sorted(zip(row.indices, row.data))})
    return {"idf": {n: round(float(v), 7) for n, v in zip(names, plain.idf_)}, "scores": scores}


corpus = json.loads((here / "corpus.json").read_text())
result = {language: weigh(pages) for language, pages in sorted(corpus.items())}
(here / "tfidf.json").write_text(json.dumps(result, ensure_ascii=False, separators=(",", ":"), sort_keys=True).replace("]},", "]},\n") + "\n")
