package durable

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// LockHolder returns the process that holds a lock on a file, or 0 when none is
// known: nobody has it locked, or the system does not tell (Linux does, in
// /proc/locks). The file is not opened: closing it would release the locks that
// this process has on it.
func LockHolder(path string) (pid int) {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	file, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	return holderIn(locks, file.Ino)
}

// HolderOf names the holder of the lock on a file for a message.
func HolderOf(path string) string {
	if pid := LockHolder(path); pid != 0 {
		return "process " + strconv.Itoa(pid)
	}
	return "another process"
}

// holderIn finds the holder of a lock in the list of proc_locks(5):
//
//	1: POSIX  ADVISORY  WRITE 1234 08:01:5678 0 EOF
//
// A line of somebody who waits has "->" behind its number. Devices are left out:
// some file systems show another one here than to stat.
func holderIn(list io.Reader, inode uint64) (pid int) {
	suffix := ":" + strconv.FormatUint(inode, 10)
	for lines := bufio.NewScanner(list); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] == "->" || !strings.HasSuffix(fields[5], suffix) {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
