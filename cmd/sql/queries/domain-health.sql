-- How did each domain fare in its last round: what blocks it, how fast and how reliably does it answer?
SELECT d.domain, d.crawl, d.round, d.planned, d.outcome_ok + d.outcome_not_modified AS fetched, d.blocked, d.blocked_by,
  round(100 * d.error_rate, 1) AS error_percent, d.first_byte_p50_ms, d.first_byte_p99_ms, d.delay_ms, d.hosts, d.address_count, d.network_count
FROM domains d
JOIN domains_all a ON a.domain = d.domain AND a.last_crawl = d.crawl AND a.last_round = d.round
ORDER BY d.blocked DESC, d.error_rate DESC, d.domain
LIMIT 100;
