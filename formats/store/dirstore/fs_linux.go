package dirstore

import (
	"os"
	"syscall"
)

// sharedFileSystem returns the name of dir's file system if Open may refuse it, otherwise "". Open
// refuses network and FUSE file systems, and file systems of the kernel such as procfs. The magic
// numbers of statfs(2) identify the file system.
func sharedFileSystem(dir string) (string, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return "", &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return sharedMagic(uint32(st.Type)), nil // the conversion to uint32 undoes the sign extension of some platforms
}

func sharedMagic(magic uint32) string {
	switch magic {
	case 0x6969:
		return "NFS"
	case 0x65735546:
		return "FUSE"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB"
	case 0x01021997:
		return "9P"
	case 0x00c36400:
		return "Ceph"
	case 0x5346414f, 0x6b414653:
		return "AFS"
	case 0x0bd00bd0:
		return "Lustre"
	case 0x47504653:
		return "GPFS"
	case 0x01161970:
		return "GFS2"
	case 0x7461636f:
		return "OCFS2"
	case 0x786f4256:
		return "a VirtualBox shared folder"
	case 0x9fa0:
		return "procfs"
	case 0x62656572:
		return "sysfs"
	case 0x27e0eb, 0x63677270:
		return "cgroup"
	case 0x1cd1:
		return "devpts"
	case 0x64626720:
		return "debugfs"
	case 0x74726163:
		return "tracefs"
	case 0x73636673:
		return "securityfs"
	}
	return ""
}
