// Package compare measures the store and those that people use today, its
// competitors, one after the other on the same machine, with the same points
// and the same questions. See docs/benchmarks.md.
package compare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"dalmatiner/bench/corpus"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
)

// Space is what the largest load of a competitor has on disk at once.
const Space = 10 << 30

// Options say what is measured.
type Options struct {
	Only  string // competitors whose name matches this regular expression, and the store; "" is all
	Quick bool   // a tenth of everything: to try, not to compare
	// parts whose name matches this regular expression: load, live, day, recordings, tags; "" is all
	Part  string
	Cache string // directory of what is fetched; "" is dalmatiner-competitors in the user's cache
}

// Run obtains all competitors first, so that building does not disturb
// measuring, and measures them one after the other. What cannot be had is named
// in the table with the reason; see Failures for what failed.
func Run(ctx context.Context, env *server.Env, o Options) (*Table, error) {
	chosen, err := choose(competitors(env.Bin), o.Only)
	if err != nil {
		return nil, err
	}
	c, err := openCache(o.Cache)
	if err != nil {
		return nil, err
	}
	parts, err := regexp.Compile(o.Part)
	if err != nil {
		return nil, fmt.Errorf("-part: %w", err)
	}
	m := &measurer{Env: env, sizes: full(), parts: parts}
	if o.Quick {
		m.sizes = quick()
	}
	t := &Table{head: report.Head{Begun: time.Now()}, sizes: m.sizes, quick: o.Quick}
	if parts.MatchString(recordingsPart) {
		if err := m.loadCorpora(corpus.Dir); err != nil {
			return nil, err
		}
	}
	return t, m.all(ctx, c, chosen, t)
}

func openCache(dir string) (*cache, error) {
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("%w: name a directory with -cache", err)
		}
		dir = filepath.Join(base, "dalmatiner-competitors")
	}
	dir, err := filepath.Abs(dir)
	return &cache{dir}, err
}

// choose returns the competitors that match, and the store in any case:
// everything is set in proportion to it.
func choose(all []*competitor, pattern string) ([]*competitor, error) {
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	chosen := all[:1:1]
	var names []string
	for _, p := range all {
		names = append(names, p.name)
		if p != all[0] && re.MatchString(p.name) {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 1 && !re.MatchString(all[0].name) {
		return nil, fmt.Errorf("-only %q matches none of %q", pattern, names)
	}
	return chosen, nil
}

// all obtains and measures all that are chosen.
func (m *measurer) all(ctx context.Context, c *cache, chosen []*competitor, t *Table) error {
	versions := make([]string, len(chosen))
	missing := make([]error, len(chosen))
	for i, p := range chosen {
		m.Logf("%s: obtaining it …", p.name)
		if versions[i], missing[i] = p.obtain(ctx, c); missing[i] != nil {
			if i == 0 {
				return missing[0]
			}
			m.Logf("SKIPPED: %s cannot be had: %v", p.name, missing[i])
		}
	}
	t.head.Machine = measure.Look(m.Bin)
	for i, p := range chosen {
		if missing[i] != nil {
			t.outcomes = append(t.outcomes, &outcome{competitor: p, skipped: missing[i]})
			continue
		}
		begun := time.Now()
		m.Logf("%s %s …", p.name, versions[i])
		o := m.measure(ctx, p, versions[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.outcomes = append(t.outcomes, o)
		m.Logf("%s took %.0f s", p.name, time.Since(begun).Seconds())
	}
	t.corpora, t.bounds = m.corpora, m.bounds(ctx)
	t.loadAfter = measure.Load()
	return nil
}
