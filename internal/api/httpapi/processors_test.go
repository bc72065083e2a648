package httpapi

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"dalmatiner/internal/model/buckets"
)

// countedStore counts the lists that are gathered at a time.
type countedStore struct {
	*fakeStore
	now, most atomic.Int64
	begun     chan struct{}
	release   chan struct{}
}

func (s *countedStore) Metrics(ctx context.Context, b buckets.Info, prefix []byte,
	fn func([]byte) bool) error {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	s.begun <- struct{}{}
	<-s.release
	return s.fakeStore.Metrics(ctx, b, prefix, fn)
}

// lister is a handler with one processor for lists, and paths of all kinds of them.
func lister(t *testing.T) (*countedStore, *api, []string) {
	t.Helper()
	s := &countedStore{fakeStore: newFakeStore(t), begun: make(chan struct{}, 64),
		release: make(chan struct{}, 64)}
	o := testOptions(s.fakeStore)
	o.Store = s
	h := New(o).(*api)
	h.lists = make(processors, 1)
	name := s.Buckets()[0].Name
	return s, h, []string{"/buckets/" + name, "/collections/" + name + "/metrics"}
}

// However many ask for lists, few are gathered at a time, and all are answered.
func TestListsTakeTurns(t *testing.T) {
	s, h, paths := lister(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if w := get(paths[i%2]).send(h); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", paths[i%2], w.Code, w.Body)
			}
		})
	}
	for range 16 {
		<-s.begun
		s.release <- struct{}{}
	}
	all.Wait()
	if n := s.most.Load(); n != 1 {
		t.Errorf("%d lists at a time, one has a processor", n)
	}
}

// unread is a client that does not take its answer until it is told to.
type unread struct {
	http.ResponseWriter
	began, take chan struct{}
}

func (w *unread) Write(p []byte) (int, error) {
	close(w.began)
	<-w.take
	return len(p), nil
}

// One who does not read its list holds back nobody.
func TestAnUnreadListHoldsNoProcessor(t *testing.T) {
	for kind := range 2 {
		s, h, paths := lister(t)
		s.release <- struct{}{}
		s.release <- struct{}{}
		w := &unread{ResponseWriter: get(paths[kind]).send(http.NotFoundHandler()),
			began: make(chan struct{}), take: make(chan struct{})}
		var first sync.WaitGroup
		first.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, paths[kind], nil)
			if err != nil {
				t.Error(err)
				return
			}
			h.ServeHTTP(w, req)
		})
		<-w.began
		if second := get(paths[kind]).send(h); second.Code != http.StatusOK {
			t.Errorf("%s: %d %s", paths[kind], second.Code, second.Body)
		}
		close(w.take)
		first.Wait()
		if len(h.lists) != 0 {
			t.Errorf("%s: a processor stays taken", paths[kind])
		}
	}
}
