package segments

import (
	"sync"
	"time"

	"crawlbatch.io/crawlbatch/formats/room"
)

// Disk watches the free space of the scratch directory, so that the fetcher starts no request that
// it could not record. Disk is safe for concurrent use.
type Disk struct {
	free    func() (int64, error) // returns the free space, in bytes
	reserve int64                 // free space below which the directory is short of space, in bytes

	mu      sync.Mutex
	looked  time.Time
	short   bool
	since   time.Time // when short last changed
	unknown bool      // whether the file system does not report free space; only a failed write then shows a full disk
}

// NewDisk watches a directory. The directory is short of space if it has fewer free bytes than the
// reserve. free, if not nil, replaces room.Free.
func NewDisk(dir string, reserve int64, free func(dir string) (int64, error)) *Disk {
	if free == nil {
		free = room.Free
	}
	return &Disk{free: func() (int64, error) { return free(dir) }, reserve: reserve}
}

// Short reports whether the directory is short of space, and since when. Short asks the file system
// at most once a second.
func (d *Disk) Short(now time.Time) (short bool, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unknown || now.Sub(d.looked) < time.Second && !d.looked.IsZero() {
		return d.short, d.since
	}
	d.looked = now
	free, err := d.free()
	if err != nil {
		d.unknown, d.short = true, false
		return false, time.Time{}
	}
	if short := free < d.reserve; short != d.short {
		d.short, d.since = short, now
	}
	return d.short, d.since
}
