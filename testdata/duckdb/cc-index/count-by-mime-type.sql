-- share of each media type, in per cent
SELECT content_mime_detected, COUNT(*) AS pages,
       100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
GROUP BY content_mime_detected
ORDER BY pages DESC;
