-- Which tasks needed several attempts, and why?
-- No row: each task needed one attempt only
SELECT s.crawl, s.round, s.stage, s.task, s.attempt, s.began_at, s.ended_at, s.machine, s.outcome, s.error_class, s.error
FROM stages s
JOIN (
  SELECT crawl, round, stage, task FROM stages GROUP BY crawl, round, stage, task HAVING count(*) > 1
) several ON s.crawl = several.crawl AND s.round = several.round AND s.stage = several.stage AND s.task = several.task
ORDER BY s.crawl, s.round, s.stage, s.task, s.attempt;
