-- pages by their most likely language
SELECT SUBSTR(content_languages, 1, 3) AS language, COUNT(*) AS pages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc' AND content_languages IS NOT NULL
GROUP BY SUBSTR(content_languages, 1, 3)
ORDER BY pages DESC, language DESC;
