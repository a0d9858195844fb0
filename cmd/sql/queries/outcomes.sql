-- How did the planned URLs end, round by round?
SELECT crawl, round, outcome, count(*) AS urls
FROM fetches
GROUP BY crawl, round, outcome
ORDER BY crawl, round, urls DESC, outcome;
