SELECT crawl, subset, COUNT(*) AS captures
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05'
GROUP BY crawl, subset
ORDER BY crawl, subset;
