SELECT url_protocol, url_port, url_query
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc' AND url_port IS NOT NULL;
