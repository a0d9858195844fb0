package dirstore

import (
	"os"
	"strings"
	"syscall"
)

const mountLocal = 0x1000 // value of MNT_LOCAL in sys/mount.h

// sharedFileSystem returns the name of dir's file system if Open may refuse it, otherwise "". A file
// system on this machine's own disks has the result "".
func sharedFileSystem(dir string) (string, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return "", &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	var name strings.Builder
	for _, c := range st.Fstypename {
		if c == 0 {
			break
		}
		name.WriteByte(byte(c))
	}
	if st.Flags&mountLocal != 0 && !strings.Contains(name.String(), "fuse") {
		return "", nil
	}
	return name.String(), nil
}
