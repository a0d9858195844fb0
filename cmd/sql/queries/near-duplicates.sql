-- Which families of near-duplicates are largest, and who are their members?
-- No row: no page is nearly the same as another page
WITH families AS (
  SELECT representative, 1 + count(DISTINCT url) AS pages
  FROM duplicates
  WHERE kind <> 'representative'
  GROUP BY representative
)
SELECT f.representative, f.pages, d.url, d.crawl, d.round, d.kind, d.distance, d.via
FROM families f JOIN duplicates d ON d.representative = f.representative
WHERE d.kind <> 'representative'
ORDER BY pages DESC, representative, kind DESC, url, crawl, round;
