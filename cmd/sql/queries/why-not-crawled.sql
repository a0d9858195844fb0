-- Why was this URL not crawled?
SELECT 'state' AS fact, crawl, round, state AS answer, outcome AS detail, first_source AS source
FROM urls_history
WHERE url = '{url}'
UNION ALL
SELECT 'fetch', crawl, round, outcome, coalesce(robots_rule, error, redirect_target), listed_last_source
FROM fetches
WHERE url = '{url}'
UNION ALL
SELECT 'skip', crawl, round, reason, detail, source
FROM skips
WHERE url = '{url}'
ORDER BY crawl, round, fact, answer;
