SELECT url, content_languages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc' AND content_languages LIKE 'deu%'
ORDER BY url;
