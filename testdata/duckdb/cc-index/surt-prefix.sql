-- all captures of a domain, which are a range of the sort key
SELECT url_surtkey
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND url_surtkey >= 'org,example)' AND url_surtkey < 'org,example-'
ORDER BY url_surtkey;
