-- Which domains take most time and bytes for each new page?
SELECT domain, first_crawl, last_crawl, rounds, new_pages, changed_pages, duplicates, requests, failed_requests,
  round(request_ms / 1000.0, 1) AS request_seconds, round(request_ms / 1000.0 / nullif(new_pages, 0), 2) AS seconds_per_new_page,
  round(bytes / 1000.0 / nullif(new_pages, 0), 1) AS kilobytes_per_new_page, delay_ms
FROM domains_all
WHERE requests > 0
ORDER BY CASE WHEN new_pages = 0 THEN 0 ELSE 1 END, 1.0 * request_ms / nullif(new_pages, 0) DESC, request_ms DESC, domain
LIMIT 100;
