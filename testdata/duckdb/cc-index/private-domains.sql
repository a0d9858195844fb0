SELECT url_host_private_suffix, url_host_private_domain, COUNT(*) AS pages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
  AND url_host_private_suffix <> url_host_registry_suffix
GROUP BY url_host_private_suffix, url_host_private_domain;
