SELECT date_trunc('day', fetch_time) AS day, EXTRACT(HOUR FROM fetch_time) AS hour, COUNT(*) AS pages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
  AND fetch_time >= TIMESTAMP '2018-01-01 00:00:00'
GROUP BY 1, 2
ORDER BY 1, 2;
