-- Which hosts answer slowly?
SELECT host, count(*) AS requests, round(avg(first_byte_ms), 0) AS mean_ms, max(first_byte_ms) AS max_ms, max(delay_ms) AS delay_ms
FROM requests
WHERE first_byte_ms IS NOT NULL
GROUP BY host
ORDER BY mean_ms DESC, host
LIMIT 100;
