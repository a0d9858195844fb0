-- How many URLs did each round find for the first time, and how many did it know?
SELECT crawl, round, count(CASE WHEN first_seen = concat(crawl, '.', CAST(round AS VARCHAR(10))) THEN 1 END) AS new_urls,
  count(CASE WHEN first_seen <> concat(crawl, '.', CAST(round AS VARCHAR(10))) THEN 1 END) AS known_urls
FROM urls_history
GROUP BY crawl, round
ORDER BY crawl, round;
