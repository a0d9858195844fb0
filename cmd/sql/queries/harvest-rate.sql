-- Which share of the pages of each round is relevant: has a score of 1 or more by the terms of frontier.focus?
-- No row: no crawl has frontier.focus
SELECT crawl, round, count(*) AS pages, count(CASE WHEN focus >= 1 THEN 1 END) AS relevant,
  count(CASE WHEN focus >= 1 THEN 1 END) / CAST(count(*) AS DOUBLE) AS harvest_rate, avg(focus) AS mean_score
FROM pages
WHERE focus IS NOT NULL
GROUP BY crawl, round
ORDER BY crawl, round;
