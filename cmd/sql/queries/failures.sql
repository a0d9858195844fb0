-- What failed, and how often?
-- No row: every planned URL was fetched, was unchanged or redirects
SELECT outcome, error, count(*) AS urls, count(DISTINCT host) AS hosts, min(url) AS example
FROM fetches
WHERE outcome NOT IN ('ok', 'not_modified', 'redirected')
GROUP BY outcome, error
ORDER BY urls DESC, outcome, error;
