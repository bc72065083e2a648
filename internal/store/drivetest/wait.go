package drivetest

import "time"

// Patience is how long a test waits for what must come.
const Patience = time.Minute

// Within fails the test when f does not return in time.
func Within(t TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s did not end within %v", what, Patience)
	}
}

// Eventually waits for a condition that another goroutine brings about.
func Eventually(t TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
		<-tick.C
	}
}
