-- Which hosts answer 429 or 503, and what delay did that lead to?
-- No row: no host answered 429 or 503
SELECT host, http_status, count(*) AS requests, max(delay_ms) AS delay_ms
FROM requests
WHERE http_status IN (429, 503)
GROUP BY host, http_status
ORDER BY requests DESC, host, http_status;
