-- Which families of near-duplicates are largest, and who are their members?
SELECT representative, url, kind, distance, cluster_size
FROM duplicates
WHERE cluster_size > 1
ORDER BY cluster_size DESC, representative, kind DESC, url, distance;
