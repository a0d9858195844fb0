-- How good were the predictions: actual time, dollars and requests as shares of the predicted ones?
SELECT crawl, round, fetch_hours / nullif(predicted_fetch_hours, 0) AS fetch_time, dollars / nullif(predicted_dollars, 0) AS dollars,
  store_gets / nullif(CAST(predicted_store_gets AS DOUBLE), 0) AS gets, store_puts / nullif(CAST(predicted_store_puts AS DOUBLE), 0) AS puts
FROM runs
ORDER BY crawl, round;
