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
	ClassCorrupt          = "corrupt"           // an input is damaged or has a newer format
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
	Usage   *Usage `json:"usage,omitempty"` // cost of the attempt, nil in records of older versions
}

func (*Attempt) kind() string { return "attempt" }

// Failure reports whether the attempt counts as a failure of its task.
func (a *Attempt) Failure() bool {
	switch a.Class {
	case ClassDone, ClassInterrupted, ClassTaken:
		return false
	}
	return true
}

// Usage is the cost of attempts: their time, and the calls to the store that store.Counts counts.
// Usage does not count the call that writes the attempt's record.
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
