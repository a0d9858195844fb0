SELECT url_host_tld, url_host_2nd_last_part, url_host_3rd_last_part, COUNT(*) AS pages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
GROUP BY url_host_tld, url_host_2nd_last_part, url_host_3rd_last_part
ORDER BY pages DESC, 1, 2, 3;
