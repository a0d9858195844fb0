-- Which link targets do pages have that their last capture lacks, and which had only the last capture? Exact, of pages with another payload. (Needs --all-months to compare months.)
-- No row: no page changed its links between two captures in the opened rounds. One month alone rarely fetches a page twice: add --all-months
WITH changed AS (
  SELECT url, crawl, round, last_crawl, last_round
  FROM page_changes
  WHERE change IN ('cosmetic', 'text') AND last_crawl IS NOT NULL
), targets AS (
  SELECT c.url, c.crawl, c.round, l.target, 1 AS has, 0 AS had
  FROM changed c
  JOIN links l ON l.source = c.url AND l.crawl = c.crawl AND l.round = c.round
  WHERE l.kind <> 'redirect'
  UNION ALL
  SELECT c.url, c.crawl, c.round, l.target, 0 AS has, 1 AS had
  FROM changed c
  JOIN links l ON l.source = c.url AND l.crawl = c.last_crawl AND l.round = c.last_round
  WHERE l.kind <> 'redirect'
)
SELECT url, CASE WHEN max(has) = 1 THEN 'added' ELSE 'removed' END AS link, target, crawl, round
FROM targets
GROUP BY url, crawl, round, target
HAVING max(has) <> max(had)
ORDER BY url, crawl, round, link, target;
