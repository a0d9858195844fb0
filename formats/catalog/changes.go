package catalog

import (
	"fmt"

	"crawlbatch.io/crawlbatch/formats/manifest"
)

// pageChanges describes the view page_changes as a dataset without files. schema.Change defines the rule.
// The view takes the stored columns of pages where they are set, and else computes them from pages and
// fetches. Its rows are answers, because a URL that answers 404
// has no row of pages.
var pageChanges = Dataset{
	Name: "page_changes",
	Row:  "an answer of a URL in a round (a page, 304, 404 or 410), compared with the URL's last capture in the rounds that the views open, reparses excluded",
	Columns: []Column{
		{"url", String, false, true, "canonical URL that answered, after redirects"},
		{"change", String, true, true, "new: first capture; none: equal payload, or 304; cosmetic: another payload with the same main text; " +
			"text: another main text; gone: 404, 410 or page_hint soft_404 after a capture (without a capture there is no row). null: the page differs from a capture in a round that is not open. Where pages have their column change, this is its value"},
		{"distance", Int32, true, true, "differing bits of the SimHashes of both main texts, 0 to 64; null unless two pages are compared"},
		{"title_changed", Boolean, true, true, "whether the titles differ; null unless two pages are compared"},
		{"links_added", Int32, true, true, "number of link targets that the last capture lacks, as in pages; 0 if the payloads are equal"},
		{"links_removed", Int32, true, true, "number of link targets that only the last capture has, as in pages; null as links_added"},
		{"last_crawl", String, true, true, "crawl of the last capture: the last page that is no soft_404; null if no open round has one"},
		{"last_round", Int32, true, true, "number of the last capture's round"},
		{"crawl", String, false, true, "crawl of the answer"},
		{"round", Int32, false, true, "number of the answer's round in its crawl"},
	},
}

// Expressions for the number of bits in which two integers differ. No expression suits all engines.
const (
	bitsDuckDB = "bit_count(xor(%s, %s))"
	bitsTrino  = "bit_count(bitwise_xor(%s, %s), 64)"
	bitsSpark  = "bit_count(%s ^ %s)"
)

// pageChangesQuery returns the query of the view. pages and fetches name the views that it reads, and bits
// is the dialect's expression. The query numbers the captures of each URL, because engines differ in how a
// window function skips rows. The column changed of a page that a redirect led to is about the planned
// URL, so it says nothing about the page's URL.
func pageChangesQuery(pages, fetches, bits string, sealed []*manifest.Sealed) string {
	const page, notModified, gone = 1, 2, 3 // if a URL has two answers in a round, the least counts
	return fmt.Sprintf(`WITH answers AS (
  SELECT url, crawl, round, min(answer) AS answer, max(content_digest) AS content_digest, max(text_digest) AS text_digest,
    max(simhash) AS simhash, max(title) AS title, max(differs) AS differs,
    max(change) AS stored, max(change_distance) AS stored_distance, max(title_differs) AS title_differs,
    max(links_added) AS links_added, max(links_removed) AS links_removed
  FROM (
    SELECT url, crawl, round, CASE WHEN page_hint = 'soft_404' THEN %[3]d ELSE %[1]d END AS answer, content_digest,
      coalesce(text_digest, '') AS text_digest, simhash, coalesce(title, '') AS title,
      CASE WHEN url <> planned_url THEN NULL WHEN changed THEN 1 WHEN NOT changed THEN 0 END AS differs,
      change, change_distance, CASE WHEN title_changed THEN 1 WHEN NOT title_changed THEN 0 END AS title_differs, links_added, links_removed
    FROM %[4]s
    UNION ALL
    SELECT coalesce(final_url, url), crawl, round, CASE WHEN outcome = 'not_modified' THEN %[2]d ELSE %[3]d END, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM %[5]s
    WHERE outcome = 'not_modified' OR outcome = 'http_4xx' AND http_status IN (404, 410)
  ) AS every_answer
  %[6]sGROUP BY url, crawl, round
), numbered AS (
  SELECT *, count(CASE WHEN answer = %[1]d THEN 1 END)
    OVER (PARTITION BY url ORDER BY crawl, round ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS captures
  FROM answers
)
SELECT n.url,
  CASE
    WHEN n.stored IS NOT NULL THEN n.stored
    WHEN n.answer = %[3]d THEN 'gone'
    WHEN n.answer = %[2]d OR n.content_digest = p.content_digest OR p.url IS NULL AND n.differs = 0 THEN 'none'
    WHEN p.url IS NULL AND n.differs IS NULL THEN 'new'
    WHEN n.text_digest = p.text_digest THEN 'cosmetic'
    WHEN n.text_digest <> p.text_digest THEN 'text'
  END AS change,
  CASE WHEN n.stored IS NOT NULL THEN n.stored_distance WHEN n.answer = %[1]d THEN CAST(%[7]s AS INTEGER) END AS distance,
  CASE WHEN n.stored IS NOT NULL THEN n.title_differs = 1 WHEN n.answer = %[1]d THEN n.title <> p.title END AS title_changed,
  coalesce(n.links_added, CASE WHEN n.answer = %[1]d AND n.content_digest = p.content_digest THEN 0 END) AS links_added,
  coalesce(n.links_removed, CASE WHEN n.answer = %[1]d AND n.content_digest = p.content_digest THEN 0 END) AS links_removed,
  p.crawl AS last_crawl, p.round AS last_round, n.crawl, n.round
FROM numbered n
LEFT JOIN numbered p ON p.url = n.url AND p.answer = %[1]d AND p.captures = n.captures - 1
WHERE n.answer = %[1]d OR n.stored IS NOT NULL OR p.url IS NOT NULL`, page, notModified, gone, pages, fetches, withoutReparses(sealed), fmt.Sprintf(bits, "n.simhash", "p.simhash"))
}
