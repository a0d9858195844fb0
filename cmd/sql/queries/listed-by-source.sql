-- How many URLs did each source list, and how did they end?
SELECT coalesce(listed_first_source, 'links and sitemaps') AS source, outcome, count(*) AS urls
FROM urls
GROUP BY coalesce(listed_first_source, 'links and sitemaps'), outcome
ORDER BY source, urls DESC, outcome;
