-- With which words do other pages link to this page?
-- No row: no page of the opened rounds links to this URL: is it written as in the tables, and does the crawl know it (why-not-crawled)?
SELECT anchor, count(DISTINCT source) AS pages, min(source) AS example
FROM links
WHERE target IN ('{url}') AND source <> target
GROUP BY anchor
ORDER BY pages DESC, anchor;
