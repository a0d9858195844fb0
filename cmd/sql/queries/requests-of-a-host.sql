-- What was requested from this host, when, and with which gap?
-- No row: this host got no request: `crawlbatch host HOST` says whether the crawl knows it
SELECT start, purpose, coalesce(sent, url) AS url, http_status, error, gap_ms, delay_ms, robots_rule
FROM requests
WHERE host = '{host}'
ORDER BY start, url;
