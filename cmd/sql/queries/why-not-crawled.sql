-- Why was this URL not crawled?
WITH facts AS (
  SELECT 'state' AS fact, crawl, round, state AS answer, outcome AS detail, first_source AS source
  FROM urls_history
  WHERE url IN ('{url}')
  UNION ALL
  SELECT 'fetch', crawl, round, outcome, coalesce(CASE WHEN error = 'redirect to a URL that robots.txt denies' THEN error || ': ' || error_detail ELSE robots_rule END, error, redirect_target), listed_last_source
  FROM fetches
  WHERE url IN ('{url}')
  UNION ALL
  SELECT 'skip', crawl, round, reason, detail, source
  FROM skips
  WHERE url IN ('{url}')
)
SELECT fact, crawl, round, answer, detail, source FROM facts
UNION ALL
SELECT 'state', NULL, NULL, 'unknown', 'no source and no link named it', NULL
WHERE NOT EXISTS (SELECT 1 FROM facts)
ORDER BY crawl, round, fact, answer;
