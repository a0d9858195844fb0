-- pages, hosts and domains of each top-level domain
SELECT url_host_tld AS tld,
       COUNT(*) AS pages,
       COUNT(DISTINCT url_host_name) AS hosts,
       COUNT(DISTINCT url_host_registered_domain) AS domains
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
GROUP BY url_host_tld
ORDER BY pages DESC, tld;
