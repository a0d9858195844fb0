-- What did a thousand fetched pages cost, at the prices of the config?
SELECT crawl, round, prices_date, urls_fetched, dollars, 1000 * dollars / nullif(urls_fetched, 0) AS dollars_per_1000
FROM runs
ORDER BY crawl, round;
