// Package k8s runs the tasks of a stage as Indexed Jobs of Kubernetes.
//
// The input is tasks, a config, a plan and a cluster. The output is Jobs, and a result or an error for each
// task. The store has a list of the partitions of each Job, and a Job's completion index is an index into
// this list. To rerun seven tasks, a Job thus needs only seven indexes. The status of a Job is only a hint: a
// task is done when the store has its result. A driver may stop at any time, and the next driver adopts the
// existing Jobs.
//
// Equal inputs give the same rendered Job, byte for byte. Executor implements jobs.Executor.
// Package k8s imports jobs/config, jobs/cost, jobs/limits, jobs/roundstate, stages, formats and Kubernetes'
// client.
package k8s
