-- Why were found URLs not planned?
SELECT reason, detail, count(DISTINCT url) AS urls, min(url) AS example
FROM skips
GROUP BY reason, detail
ORDER BY urls DESC, reason, detail;
