-- What did each stage cost, and which share of the dollars did failed attempts take?
SELECT crawl, round, stage, count(*) AS attempts, round(sum(wall_ms) / 3.6e6, 3) AS hours, round(sum(cpu_ms) / 3.6e6, 3) AS cpu_hours,
  max(peak_memory_bytes) AS peak_memory_bytes, sum(store_puts) AS puts, sum(store_gets) AS gets, sum(dollars) AS dollars,
  sum(CASE WHEN error_class IS NOT NULL THEN dollars ELSE 0 END) / nullif(sum(dollars), 0) AS lost_share
FROM stages
GROUP BY crawl, round, stage
ORDER BY crawl, round, dollars DESC;
