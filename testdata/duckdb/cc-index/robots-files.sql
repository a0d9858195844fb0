SELECT url_host_name, url_path, fetch_status
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'robotstxt'
ORDER BY url_host_name;
