SELECT content_mime_type, AVG(warc_record_length) AS bytes, COUNT(*) AS pages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
GROUP BY content_mime_type
ORDER BY pages;
