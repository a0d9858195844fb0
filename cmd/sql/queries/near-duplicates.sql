-- Which families of near-duplicates are largest, and who are their members?
-- No row: no page is nearly the same as another page
SELECT representative, 1 + count(*) OVER (PARTITION BY representative) AS pages, url, crawl, round, kind, distance, via
FROM duplicates
WHERE kind <> 'representative'
ORDER BY pages DESC, representative, kind DESC, url, crawl, round;
