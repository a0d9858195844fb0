SELECT url, fetch_redirect
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'crawldiagnostics'
  AND fetch_status BETWEEN 300 AND 399 AND fetch_redirect IS NOT NULL
ORDER BY url;
