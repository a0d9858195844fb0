package manifest

import "time"

// The classes of ended attempts. The classes ClassDone, ClassInterrupted and ClassTaken are not
// failures.
const (
	ClassDone        = "done"
	ClassInterrupted = "interrupted" // the attempt was told to stop
	ClassTaken       = "taken"       // another attempt took the task over

	ClassFailed           = "failed"            // the attempt failed for a reason without a class of its own
	ClassFault            = "fault"             // crawlbatch itself has a fault
	ClassPermanent        = "permanent"         // retrying cannot help
	ClassCorrupt          = "corrupt"           // an input is damaged or has another format
	ClassStoreUnavailable = "store_unavailable" // the store did not answer
	ClassStoreDenied      = "store_denied"      // the store refused access
	ClassDiskFull         = "disk_full"         // the store or the local disk is full
	ClassOutOfMemory      = "out_of_memory"     // the process was killed because it used too much memory
	ClassKilled           = "killed"            // the process was killed from outside and left no record
)

// FailureClasses lists the classes of failed attempts.
func FailureClasses() []string {
	return []string{
		ClassFailed, ClassFault, ClassPermanent, ClassCorrupt, ClassStoreUnavailable, ClassStoreDenied, ClassDiskFull,
		ClassOutOfMemory, ClassKilled,
	}
}

// Attempt records how an attempt at a task ended and what it cost.
type Attempt struct {
	Header
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	At      string `json:"at"` // time when the attempt ended, RFC 3339, UTC
	Class   string `json:"class"`
	Error   string `json:"error"`           // message of the error, "" if the task is done
	Machine string `json:"machine"`         // name of the host or pod
	Usage   *Usage `json:"usage,omitempty"` // cost of the attempt, nil if it died

	// The fields below are empty in the record of an attempt that died: another process wrote the record.
	Began string `json:"began,omitempty"`      // time when the attempt began, as in the attempt's Begun
	Epoch int    `json:"epoch,omitempty"`      // epoch with which the attempt held its partition, 0 if it held none
	CPUMS int64  `json:"cpu_ms,omitempty"`     // share of the process's CPU time during the attempt, milliseconds
	Peak  int64  `json:"peak_bytes,omitempty"` // largest resident memory of the process so far, bytes
	Rows  *int64 `json:"rows,omitempty"`       // rows of the files in the task's result, nil if this attempt stored no result
}

func (*Attempt) kind() string { return "attempt" }

// Begun records that an attempt at a task began, or, for a fetch task, that it was about to take its
// partition. The Attempt of the same attempt has the same Machine, and the same time in Began. If there is no such Attempt, the attempt still runs or was killed.
type Begun struct {
	Header
	Task    string `json:"task"`
	At      string `json:"at"` // time when the attempt began, RFC 3339, UTC
	Machine string `json:"machine"`
}

func (*Begun) kind() string { return "begun" }

// Failure reports whether the attempt counts as a failure of its task.
func (a *Attempt) Failure() bool {
	switch a.Class {
	case ClassDone, ClassInterrupted, ClassTaken:
		return false
	}
	return true
}

// Usage is the cost of one or more attempts: their time, and their calls to the store as in
// store.Counts. The call that writes the attempt's record is not counted.
type Usage struct {
	WallMS       int64 `json:"wall_ms"`
	Puts         int64 `json:"puts"` // writes; an upload in parts counts as one write
	Gets         int64 `json:"gets"` // number of opened objects and range reads
	Lists        int64 `json:"lists"`
	Deletes      int64 `json:"deletes"`
	Failed       int64 `json:"failed"` // failed calls of all kinds
	BytesRead    int64 `json:"bytes_read"`
	BytesWritten int64 `json:"bytes_written"`
}

// Add returns the field-wise sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		WallMS: u.WallMS + v.WallMS,
		Puts:   u.Puts + v.Puts, Gets: u.Gets + v.Gets, Lists: u.Lists + v.Lists, Deletes: u.Deletes + v.Deletes,
		Failed: u.Failed + v.Failed, BytesRead: u.BytesRead + v.BytesRead, BytesWritten: u.BytesWritten + v.BytesWritten,
	}
}

// Wall returns the total time of the attempts.
func (u Usage) Wall() time.Duration { return time.Duration(u.WallMS) * time.Millisecond }
