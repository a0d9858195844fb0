// Package k8s runs the tasks of a stage as Indexed Jobs of Kubernetes.
//
// In: tasks, a config, a plan and a cluster. Out: Jobs, and per task what became of
// it. A Job's completion index points into a dense list of partitions that lies in
// the store, so that a rerun of seven tasks is a Job of seven indexes. What a Job
// says is news only: a task is done when the store has its result. A driver may be
// stopped at any time; the next one adopts the Jobs it finds.
//
// Renderer is pure: the same inputs give the same Job, byte for byte. Executor
// implements jobs.Executor. The package imports jobs/config, jobs/worker, stages,
// formats and Kubernetes' client.
package k8s
