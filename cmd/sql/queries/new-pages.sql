-- Which pages were fetched for the first time in the newest round?
SELECT p.url, p.title, p.depth, p.inlinks
FROM pages p
JOIN (SELECT url, min(crawl) AS crawl, min(round) AS round FROM pages GROUP BY url) f
  ON p.url = f.url AND p.crawl = f.crawl AND p.round = f.round
WHERE p.crawl = (SELECT max(crawl) FROM fetches)
  AND p.round = (SELECT max(round) FROM fetches WHERE crawl = (SELECT max(crawl) FROM fetches))
ORDER BY p.inlinks DESC, p.url
LIMIT 1000;
