-- What was requested from this host, when, and with which gap?
SELECT start, purpose, url, http_status, error, gap_ms, delay_ms, robots_rule
FROM requests
WHERE host = '{host}'
ORDER BY start, url;
