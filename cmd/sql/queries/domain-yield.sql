-- Which domains take longest from their first to their last request (waits and pauses too) for each new page, and how many bytes does one cost?
SELECT domain, rounds, new_pages, changed_pages, duplicates, requests, failed_requests, round(span_ms / 1000.0, 1) AS span_seconds,
  round(span_ms / 1000.0 / nullif(new_pages, 0), 2) AS seconds_per_new_page, round(CAST(bytes AS DOUBLE) / 1000 / nullif(new_pages, 0), 1) AS kilobytes_per_new_page, delay_ms
FROM domains_all
WHERE requests > 0
ORDER BY CASE WHEN new_pages = 0 THEN 0 ELSE 1 END, 1.0 * span_ms / nullif(new_pages, 0) DESC, span_ms DESC, domain
LIMIT 100;
