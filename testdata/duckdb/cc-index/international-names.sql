SELECT url_host_name, COUNT(*) AS pages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
  AND (url_host_name LIKE 'xn--%' OR url_host_name LIKE '%.xn--%')
GROUP BY url_host_name;
