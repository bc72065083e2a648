package test

import (
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// maxFrame is longer than any Ethernet frame of these tests.
const maxFrame = 4096

// weather is what happens to the frames in a cable. Zero loses and delays none.
type weather struct {
	loss   float64       // the share that is lost
	delay  time.Duration // of each frame
	jitter time.Duration // at most, on top of that: frames overtake each other
}

// cable connects two network devices. This process carries each frame from one to the other.
type cable struct {
	ends [2]*os.File
	done sync.WaitGroup

	mu      sync.Mutex
	rng     *rand.Rand
	weather weather
	late    sync.WaitGroup // frames under way
	carried int
	lost    int
}

// newCable makes two devices in the network namespace of the test, and connects them until the test
// ends.
func newCable(t *testing.T, rng *rand.Rand, one, other string) *cable {
	t.Helper()
	c := &cable{rng: rand.New(rand.NewPCG(rng.Uint64(), 0)),
		ends: [2]*os.File{tap(t, one), tap(t, other)}}
	for i := range c.ends {
		c.done.Go(func() { c.carry(c.ends[i], c.ends[1-i]) })
	}
	t.Cleanup(func() {
		for _, end := range c.ends {
			_ = end.Close() // nothing is kept in it
		}
		c.done.Wait()
		c.late.Wait()
	})
	return c
}

// tap makes a network device whose frames are read from the file, and written to it.
// https://docs.kernel.org/networking/tuntap.html
func tap(t *testing.T, name string) *os.File {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("SKIPPED: /dev/net/tun: %v: load the module tun", err)
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		t.Fatal(err)
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		t.Fatalf("making %s: %v", name, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that Close ends a Read
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), name)
}

// set changes the weather for all frames that come from now on.
func (c *cable) set(w weather) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.weather = w
}

// counts returns how many frames were carried and lost.
func (c *cable) counts() (carried, lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.carried, c.lost
}

// carry reads frames until the device is gone.
func (c *cable) carry(from, to *os.File) {
	buf := make([]byte, maxFrame)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		after, lost := c.draw()
		switch {
		case lost:
		case after == 0:
			_, _ = to.Write(buf[:n]) // a device that is down loses it, as a network does
		default:
			frame := append([]byte(nil), buf[:n]...)
			c.late.Add(1)
			time.AfterFunc(after, func() {
				defer c.late.Done()
				_, _ = to.Write(frame)
			})
		}
	}
}

// draw says what happens to a frame.
func (c *cable) draw() (after time.Duration, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.weather
	if w.loss > 0 && c.rng.Float64() < w.loss {
		c.lost++
		return 0, true
	}
	c.carried++
	if after = w.delay; w.jitter > 0 {
		after += time.Duration(c.rng.Int64N(int64(w.jitter)))
	}
	return after, false
}
