-- What do pages, redirects, robots.txt and sitemaps cost in requests, bytes and time?
SELECT crawl, round, purpose, count(*) AS requests, count(DISTINCT host) AS hosts, sum(bytes_sent) AS bytes_sent,
  sum(bytes_received) AS bytes_received, round(CAST(sum(total_ms) AS DOUBLE) / 1000, 1) AS seconds
FROM requests
GROUP BY crawl, round, purpose
ORDER BY crawl, round, requests DESC, purpose;
