SELECT url_host_name, content_languages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
  AND url_path = '/' AND url_query IS NULL AND fetch_status = 200 AND content_truncated IS NULL
ORDER BY url_host_name;
