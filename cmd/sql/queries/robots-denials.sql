-- Which rules of robots.txt deny most URLs?
-- No row: robots.txt denied no planned URL
SELECT host, robots_rule, count(DISTINCT url) AS urls, min(url) AS example
FROM (
  SELECT host, url, CASE WHEN error = 'redirect to a URL that robots.txt denies' THEN substr(error_detail, position(': ' IN error_detail) + 2) ELSE robots_rule END AS robots_rule
  FROM fetches
  WHERE outcome = 'robots_denied'
) AS denied
GROUP BY host, robots_rule
ORDER BY urls DESC, host, robots_rule;
