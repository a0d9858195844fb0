-- Which pages were fetched for the first time in the newest round? It shows the 1,000 with the most inlinks.
-- No row: the newest round fetched only pages that an earlier round had fetched, or none
SELECT p.url, p.title, p.depth, p.inlinks
FROM pages p
WHERE p.changed IS NULL
  AND p.crawl = (SELECT max(crawl) FROM fetches)
  AND p.round = (SELECT max(round) FROM fetches WHERE crawl = (SELECT max(crawl) FROM fetches))
ORDER BY p.inlinks DESC, p.url
LIMIT 1000;
