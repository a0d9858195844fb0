-- Which rules of robots.txt deny most URLs?
-- No row: robots.txt denied no planned URL
SELECT host, robots_rule, count(DISTINCT url) AS urls, min(url) AS example
FROM fetches
WHERE outcome = 'robots_denied'
GROUP BY host, robots_rule
ORDER BY urls DESC, host, robots_rule;
