-- Which hosts have pages that need scripts, and how many of their pages are such?
-- No row: no page seems to need scripts
SELECT url_host_name, count(CASE WHEN page_hint = 'scripts' THEN url END) AS need_scripts, count(*) AS pages,
  min(CASE WHEN page_hint = 'scripts' THEN url END) AS example
FROM pages
WHERE document_kind = 'html'
GROUP BY url_host_name
HAVING count(CASE WHEN page_hint = 'scripts' THEN url END) > 0
ORDER BY need_scripts DESC, url_host_name;
