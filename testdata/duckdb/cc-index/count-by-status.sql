SELECT fetch_status, COUNT(*) AS captures
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05'
  AND (subset = 'warc' OR subset = 'crawldiagnostics' OR subset = 'robotstxt')
GROUP BY fetch_status
ORDER BY captures DESC, fetch_status;
