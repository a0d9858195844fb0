// Package k8s runs the tasks of a stage as Indexed Jobs of Kubernetes.
//
// In: tasks, a config, a plan and a cluster. Out: Jobs, and the end of each task. A Job's
// completion index points into a dense list of partitions in the store. So a rerun of seven tasks
// is a Job with seven indexes. The status of a Job is only a hint: a task is done when the store
// has its result. A driver may stop at any time; the next driver adopts the Jobs that it finds.
//
// Renderer is pure: the same inputs give the same Job, byte for byte. Executor implements
// jobs.Executor. The package imports jobs/config, jobs/roundstate, stages, formats and Kubernetes'
// client.
package k8s
