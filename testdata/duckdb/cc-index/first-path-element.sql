SELECT split_part(url_path, '/', 2) AS element, COUNT(*) AS pages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
GROUP BY 1
ORDER BY pages DESC, element DESC;
