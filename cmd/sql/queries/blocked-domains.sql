-- Which domains refuse the crawler (403, 429), and how often did their breakers open?
-- No row: no domain answered 403 or 429, and no breaker opened
SELECT h.domain, h.crawl, h.round, h.hosts, r.answers, r.forbidden, r.rate_limited,
  round(100.0 * (r.forbidden + r.rate_limited) / nullif(r.answers, 0), 1) AS blocked_percent, h.breaker_events, h.max_delay_ms
FROM (
  SELECT domain, crawl, round, count(*) AS hosts, sum(breaker_events) AS breaker_events, max(delay_ms) AS max_delay_ms
  FROM hosts
  GROUP BY domain, crawl, round
) h
LEFT JOIN (
  SELECT n.domain, n.crawl, n.round, count(*) AS answers,
    sum(CASE WHEN q.http_status = 403 THEN 1 ELSE 0 END) AS forbidden,
    sum(CASE WHEN q.http_status = 429 THEN 1 ELSE 0 END) AS rate_limited
  FROM requests q
  JOIN hosts n ON n.host = q.host AND n.crawl = q.crawl AND n.round = q.round
  WHERE q.http_status IS NOT NULL
  GROUP BY n.domain, n.crawl, n.round
) r ON r.domain = h.domain AND r.crawl = h.crawl AND r.round = h.round
WHERE r.forbidden + r.rate_limited > 0 OR h.breaker_events > 0
ORDER BY blocked_percent DESC, h.breaker_events DESC, h.domain, h.crawl, h.round
LIMIT 100;
