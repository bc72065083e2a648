package traffic

import (
	"errors"
	"net/netip"
	"runtime"

	"golang.org/x/sys/unix"
)

// Try makes and removes classes in a network namespace of its own, and returns what of that the
// kernel could not do. No interface of the machine is touched. It needs root.
func Try() error {
	done := make(chan error, 1)
	go func() {
		// never unlocked: the thread ends with the goroutine, and the namespace with the thread
		runtime.LockOSThread()
		done <- try()
	}()
	return <-done
}

func try() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	s, err := Start(Options{Interface: "lo", Line: 1_000_000_000})
	if err != nil {
		return err
	}
	return errors.Join(s.Set([]Share{{Device: "one", Address: netip.MustParseAddr("127.0.0.2")}}),
		s.Close())
}
