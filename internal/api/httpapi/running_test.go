package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"dalmatiner/internal/api/httpapi/running"
	"dalmatiner/internal/query"
)

// TestRunningQueries: a query is in the list from when it is asked until it is
// answered, under the name that its client gave it.
func TestRunningQueries(t *testing.T) {
	s := newFakeStore(t)
	o := testOptions(s)
	started, release := make(chan struct{}), make(chan struct{})
	o.Engine = engineFunc(func(context.Context, string) (*query.Result, error) {
		started <- struct{}{}
		<-release
		return &query.Result{}, nil
	})
	h := New(o)
	list := func(target string) (list []running.Query) {
		t.Helper()
		if err := json.Unmarshal(get(target).send(h).Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	if l := list("/admin/queries"); len(l) != 0 {
		t.Fatalf("before any there are %+v", l)
	}
	long := "SELECT " + strings.Repeat("x", 2*running.Shown)
	done := make(chan int)
	for _, target := range []string{"/?id=mine&q=first", "/?q=" + strings.ReplaceAll(long, " ", "+")} {
		go func() { done <- get(target).send(h).Code }()
		<-started
	}
	if l := list("/admin/queries"); len(l) != 2 || l[0].ID != "mine" || l[0].Query != "first" ||
		l[1].Query != long[:running.Shown] {
		t.Errorf("there are %+v", l)
	}
	if l := list("/admin/queries?id=mine"); len(l) != 1 || l[0].Query != "first" || l[0].Share != 0 {
		t.Errorf("under the name there are %+v", l)
	}
	close(release)
	for range 2 {
		if code := <-done; code != http.StatusOK {
			t.Errorf("a query ended with %d", code)
		}
	}
	if l := list("/admin/queries"); len(l) != 0 {
		t.Errorf("after all there are %+v", l)
	}
	if w := get("/?q=x&id=" + strings.Repeat("i", running.MaxID+1)).send(
		h); w.Code != http.StatusBadRequest {
		t.Errorf("a long name: status %d", w.Code)
	}
}
