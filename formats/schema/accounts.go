package schema

// StageAttempt is a row of the stages dataset: an attempt at a task.
type StageAttempt struct {
	Stage        string   `parquet:"stage,dict" vol:"1" doc:"stage of the task: fetch, merge, digest, similar, cluster, dedup, rank, frontier or publish"`
	Task         int32    `parquet:"task" vol:"1" doc:"number of the task within its stage: the number of a partition, a bucket or a shard"`
	Attempt      int32    `parquet:"attempt" vol:"1" doc:"number of the attempt at the task, from 1, in the order in which attempts began"`
	Epoch        *int32   `parquet:"epoch,optional" vol:"1" doc:"epoch with which the attempt held its partition, as in requests; null for other stages than fetch, and if the attempt never held it"`
	BeganAt      Time     `parquet:"began_at,optional,timestamp(microsecond)" vol:"1" doc:"when the attempt began, by the clock of its machine; null if unknown"`
	EndedAt      Time     `parquet:"ended_at,optional,timestamp(microsecond)" vol:"1" doc:"when the attempt ended, or when its death was noticed; null if it left no record of its end"`
	WallMS       *int64   `parquet:"wall_ms,optional" vol:"1" doc:"time that the attempt took, without waits for another attempt that held its partition, milliseconds; this and the following numbers are null if the attempt left no record of its end"`
	CPUMS        *int64   `parquet:"cpu_ms,optional" vol:"1" doc:"CPU time (user and system) of the process during the attempt, milliseconds; attempts that run in one process at the same time share its CPU time evenly"`
	PeakMemory   *int64   `parquet:"peak_memory_bytes,optional" vol:"1" doc:"largest resident memory of the process from its start to the end of the attempt, bytes; it includes other attempts in the same process"`
	Rows         *int64   `parquet:"rows_written,optional" vol:"1" doc:"rows of the files in the task's result; null unless this attempt stored the result"`
	BytesWritten *int64   `parquet:"bytes_written,optional" vol:"1" doc:"bytes written to the store"`
	BytesRead    *int64   `parquet:"bytes_read,optional" vol:"1" doc:"bytes read from the store"`
	Puts         *int64   `parquet:"store_puts,optional" vol:"1" doc:"writes to the store (PUT); an upload in parts counts as one"`
	Gets         *int64   `parquet:"store_gets,optional" vol:"1" doc:"opened objects and read ranges (GET)"`
	Lists        *int64   `parquet:"store_lists,optional" vol:"1" doc:"listings (LIST)"`
	Deletes      *int64   `parquet:"store_deletes,optional" vol:"1" doc:"deletions (DELETE)"`
	FailedCalls  *int64   `parquet:"store_failed,optional" vol:"1" doc:"failed calls of all kinds"`
	Dollars      *float64 `parquet:"dollars,optional" vol:"1" doc:"price of the attempt, in dollars: its time on a machine of the size that its pod would have, and its calls to the store; prices are those of the config when the round was sealed"`
	Machine      string   `parquet:"machine,optional,dict" vol:"1" doc:"host name, or name of the pod"`
	Outcome      string   `parquet:"outcome,dict" vol:"1" doc:"done, interrupted (told to stop), taken (another attempt took the task over), failed, or killed: it left no record of its end, or was found dead"`
	ErrorClass   string   `parquet:"error_class,optional,dict" vol:"1" doc:"class of the failure, as crawlbatch retry --class takes it; null unless the outcome is failed or killed"`
	Error        string   `parquet:"error,optional" vol:"1" doc:"message of the error, cut to 1,000 bytes; null if there is none"`
	Version      string   `parquet:"version,optional,dict" vol:"1" doc:"version of crawlbatch that made the attempt"`
}

// Run is a row of the runs dataset: a round, with what was predicted and what it took.
type Run struct {
	Plan             string   `parquet:"plan" vol:"1" doc:"ID of the round's plan"`
	BeganAt          Time     `parquet:"began_at,optional,timestamp(microsecond)" vol:"1" doc:"when the first attempt of the round began"`
	EndedAt          Time     `parquet:"ended_at,optional,timestamp(microsecond)" vol:"1" doc:"when the last attempt of the round ended"`
	Hours            *float64 `parquet:"hours,optional" vol:"1" doc:"time from began_at to ended_at, hours; pauses between commands are included"`
	FetchHours       *float64 `parquet:"fetch_hours,optional" vol:"1" doc:"time from the first to the last moment at which a fetch task ran, hours"`
	PredictedFetch   *float64 `parquet:"predicted_fetch_hours,optional" vol:"1" doc:"what the plan predicted for fetch_hours, with as many fetch tasks at a time as ran on average, hours"`
	TaskHours        float64  `parquet:"task_hours" vol:"1" doc:"times of all attempts, hours"`
	PredictedTask    *float64 `parquet:"predicted_task_hours,optional" vol:"1" doc:"what was predicted for task_hours; this and the other predictions are null for a reparse"`
	CPUHours         float64  `parquet:"cpu_hours" vol:"1" doc:"CPU times of all attempts, hours"`
	PeakMemory       int64    `parquet:"peak_memory_bytes" vol:"1" doc:"largest resident memory of a process that ran attempts, bytes"`
	Partitions       int32    `parquet:"partitions" vol:"1" doc:"partitions of the plan"`
	Attempts         int32    `parquet:"attempts" vol:"1" doc:"attempts at tasks: rows of stages"`
	Failed           int32    `parquet:"attempts_failed" vol:"1" doc:"of these, attempts that failed or were killed"`
	URLsPlanned      int64    `parquet:"urls_planned" vol:"1" doc:"planned URLs"`
	URLsFetched      int64    `parquet:"urls_fetched" vol:"1" doc:"planned URLs with the outcome ok or not_modified"`
	URLsDeferred     int64    `parquet:"urls_deferred" vol:"1" doc:"planned URLs with the outcome deferred"`
	Requests         int64    `parquet:"requests" vol:"1" doc:"requests to web servers: rows of requests"`
	Pages            int64    `parquet:"pages" vol:"1" doc:"rows of pages"`
	Puts             int64    `parquet:"store_puts" vol:"1" doc:"writes to the store (PUT) of all attempts"`
	PredictedPuts    *int64   `parquet:"predicted_store_puts,optional" vol:"1" doc:"what was predicted for store_puts"`
	Gets             int64    `parquet:"store_gets" vol:"1" doc:"opened objects and read ranges (GET) of all attempts"`
	PredictedGets    *int64   `parquet:"predicted_store_gets,optional" vol:"1" doc:"what was predicted for store_gets"`
	Lists            int64    `parquet:"store_lists" vol:"1" doc:"listings (LIST) of all attempts"`
	PredictedLists   *int64   `parquet:"predicted_store_lists,optional" vol:"1" doc:"what was predicted for store_lists"`
	BytesRead        int64    `parquet:"bytes_read" vol:"1" doc:"bytes that all attempts read from the store"`
	BytesWritten     int64    `parquet:"bytes_written" vol:"1" doc:"bytes that all attempts wrote to the store"`
	PredictedBytes   *int64   `parquet:"predicted_bytes_written,optional" vol:"1" doc:"what was predicted for bytes_written"`
	Dollars          *float64 `parquet:"dollars,optional" vol:"1" doc:"price of all attempts, in dollars, as in stages"`
	PredictedDollars *float64 `parquet:"predicted_dollars,optional" vol:"1" doc:"what was predicted for dollars"`
	StoredDollars    *float64 `parquet:"stored_dollars_month,optional" vol:"1" doc:"price of keeping bytes_written for a month, in dollars"`
	PricesDate       string   `parquet:"prices_date,optional" vol:"1" doc:"date of the prices: prices.date of the config"`
	Version          string   `parquet:"version" vol:"1" doc:"version of crawlbatch that sealed the round"`
}
