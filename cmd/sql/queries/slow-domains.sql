-- Which domains answer slowly, by the median, 90th and 99th percentile (nearest rank) of the time to first byte?
SELECT domain, crawl, round, max(answers) AS answers,
  min(CASE WHEN place >= 0.50 * answers THEN first_byte_ms END) AS p50_ms,
  min(CASE WHEN place >= 0.90 * answers THEN first_byte_ms END) AS p90_ms,
  min(CASE WHEN place >= 0.99 * answers THEN first_byte_ms END) AS p99_ms
FROM (
  SELECT h.domain, q.crawl, q.round, q.first_byte_ms,
    row_number() OVER (PARTITION BY h.domain, q.crawl, q.round ORDER BY q.first_byte_ms) AS place,
    count(*) OVER (PARTITION BY h.domain, q.crawl, q.round) AS answers
  FROM requests q
  JOIN hosts h ON h.host = q.host AND h.crawl = q.crawl AND h.round = q.round
  WHERE q.first_byte_ms IS NOT NULL
) AS ranked
GROUP BY domain, crawl, round
ORDER BY p90_ms DESC, domain, crawl, round
LIMIT 100;
