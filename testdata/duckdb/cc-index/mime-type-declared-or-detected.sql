SELECT content_mime_type, content_mime_detected, COUNT(*) AS pages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
GROUP BY content_mime_type, content_mime_detected
HAVING COUNT(*) >= 1
ORDER BY pages, content_mime_type;
