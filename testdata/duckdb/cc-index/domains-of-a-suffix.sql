SELECT url_host_registered_domain, COUNT(*) AS pages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc' AND url_host_registry_suffix = 'co.uk'
GROUP BY url_host_registered_domain
HAVING COUNT(*) >= 1
ORDER BY pages DESC
LIMIT 500;
